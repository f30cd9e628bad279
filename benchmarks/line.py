"""Measures one line in this process and writes its result as JSON, or the reason of its failure.
`python -m benchmarks` starts it."""

from __future__ import annotations

import importlib
import json
import logging
import signal
import sys
import traceback
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import LINES
from benchmarks.resources import watched


def found(line: str) -> dict[str, Any]:
    """The result of a line. Our memory in our turns is added where the line did not report it."""
    module = importlib.import_module(f"benchmarks.{LINES[line][0]}")
    with watched() as memory:
        results = module.measure(line)
    mine = memory.gib()
    results = [replace(r, memory_gib=r.memory_gib or mine) for r in results]
    return {"results": [asdict(r) for r in results], "memory": memory.said()}


def _interrupted(*_: object) -> None:
    """End the line: the code that opened servers and folders stops and removes them. A second
    signal does not interrupt that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """`python -m benchmarks.line LINE FILE`. SIGTERM and SIGINT end it cleanly."""
    line, path = sys.argv[1:3]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    try:
        told = found(line)
    except Exception as err:  # noqa: BLE001 (whatever it was, the table says it)
        traceback.print_exc()
        told = {"error": f"{type(err).__name__}: {err}"}
    Path(path).write_text(json.dumps(told))
    return 1 if "error" in told else 0


if __name__ == "__main__":
    sys.exit(main())
