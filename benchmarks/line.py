"""Measures one line in this process and writes what it found as JSON; started by `python -m benchmarks`."""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import LINES
from benchmarks.resources import Memory


def main() -> int:
    """`python -m benchmarks.line LINE FILE`."""
    line, path = sys.argv[1:3]
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    module = importlib.import_module(f"benchmarks.{LINES[line][0]}")
    memory = Memory(os.getpid(), every=1.0)
    memory.start()
    results = [asdict(r) for r in module.measure(line)]
    memory.close()
    Path(path).write_text(json.dumps({"results": results, "memory": memory.said()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
