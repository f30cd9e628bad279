"""`python -m benchmarks [line ...]`: measure, print the table, write results.json and
docs/benchmarks.md. `page` only writes the page again. A failed line is reported with its error, and
the other lines continue.

A soak takes an hour (SOAK_MINUTES) and is measured only where its name is given. BENCH_SCALE
(such as 0.01) makes every load smaller, BENCH_ROUNDS sets the number of rounds, BENCH_DIR the
folder for temporary files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import BY_NAME_ONLY, LINES, programs, report
from benchmarks.page import table

LIMIT_SECONDS = 1500
GRACE_SECONDS = 120.0
"""Seconds that a line gets to end: it stops its servers and removes their folders, which hold
gigabytes."""
ERROR_CHARACTERS = 400
PAGE = "page"


def told_by(command: Sequence[str], path: Path, limit_seconds: float) -> dict[str, Any]:
    """The result that a line's process wrote, or `{"error"}`. A process that takes too long is
    ended with all that it started."""
    process, error = subprocess.Popen(list(command), cwd=report.ROOT), ""
    try:
        code = process.wait(limit_seconds)
        error = f"Its process ended with {code}, and wrote nothing."
    except subprocess.TimeoutExpired:
        error = f"It took longer than {limit_seconds:.0f} s."
        programs.end(process, GRACE_SECONDS)
    except BaseException:  # a terminal sent Ctrl-C to the line too
        programs.end(process, GRACE_SECONDS, is_told=True)
        raise
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {"error": error}


def measure(line: str, limit_seconds: float = LIMIT_SECONDS) -> bool:
    """Measure one line in a process of its own and record its result or its failure; False where it
    failed."""
    sys.stderr.write(f"--- {line}: {LINES[line][1]}\n")
    before, began = report.load(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        command = [sys.executable, "-m", "benchmarks.line", line, str(path)]
        told = told_by(command, path, limit_seconds)
    if "error" in told:
        report.record_failure(line, " ".join(told["error"].split())[:ERROR_CHARACTERS])
        return False
    facts = {
        "load_before": before,
        "load_after": report.load(),
        "seconds": round(time.monotonic() - began),
        "memory": told["memory"],
        "scale": float(os.environ.get("BENCH_SCALE", "1")),
        "rounds": int(os.environ.get("BENCH_ROUNDS", "3")),
    }
    report.record(line, [report.result_of(r) for r in told["results"]], facts)
    return True


def limit_of(line: str) -> float:
    """Seconds that a line may take."""
    soak = 2 * 60 * float(os.environ.get("SOAK_MINUTES", "60")) if line in BY_NAME_ONLY else 0.0
    return LIMIT_SECONDS + soak


def main(arguments: Sequence[str]) -> int:
    """Measure the lines that were asked for, or all without arguments; 1 where a line failed."""
    if list(arguments) == [PAGE]:
        report.rewrite()
        return 0
    lines = list(arguments) or [line for line in LINES if line not in BY_NAME_ONLY]
    unknown = [line for line in lines if line not in LINES]
    if unknown:
        print(f"No such line: {', '.join(unknown)}. There are: {', '.join(LINES)}", file=sys.stderr)
        return 2
    failed = [line for line in lines if not measure(line, limit_of(line))]
    known = report.notes()
    print(table(lines, report.rows(), known["lines"], known["failed"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
