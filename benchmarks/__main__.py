"""`python -m benchmarks [line ...]`: measure, print the table, write results.json and docs/benchmarks.md.

BENCH_SCALE makes everything smaller (0.01), BENCH_ROUNDS says how often, BENCH_DIR where the files lie meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import LINES
from benchmarks.report import ROOT, Peer, Result, load, record, table

LIMIT_SECONDS = 1500


def _run(line: str) -> bool:
    """Measure one line in a process of its own and record it; False where it failed."""
    print(f"--- {line}: {LINES[line][1]}", file=sys.stderr, flush=True)
    before, began = load(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        command = [sys.executable, "-m", "benchmarks.line", line, str(path)]
        try:
            done = subprocess.run(command, check=False, cwd=ROOT, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        if done.returncode or not path.exists():
            return False
        found = json.loads(path.read_text())
    results = [
        Result(**{**r, "peers": tuple(Peer(**p) for p in r["peers"])}) for r in found["results"]
    ]
    facts = {
        "load_before": before,
        "load_after": load(),
        "seconds": round(time.monotonic() - began),
        "memory": found["memory"],
        "scale": float(os.environ.get("BENCH_SCALE", "1")),
    }
    record(results, facts)
    return True


def main() -> int:
    """Measure what was asked for, everything without arguments."""
    lines = sys.argv[1:] or list(LINES)
    unknown = [line for line in lines if line not in LINES]
    if unknown:
        print(f"No such line: {', '.join(unknown)}. There are: {', '.join(LINES)}", file=sys.stderr)
        return 2
    failed = [line for line in lines if not _run(line)]
    print(table(lines))
    if failed:
        print(f"Not measured, see above: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
