"""`python -m tests.fuzz mysql|postgresql [--events N] [--seed S] [--segments N]`, or `record`.

Millions of row events go one by one through the compiled loops, thousands of whole segments (also
with damaged TABLE_MAPs, Relations and statements) through `decode`, and what is decoded of a sample
is compared with a slow reader that shares no code with the product. All of it in a process of its
own where numba checks every index; a crash of it is seen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BATCH = 250_000


def main() -> int:
    """0 where every mutation was borne."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("what", choices=("mysql", "postgresql", "record"))
    parser.add_argument("--events", type=int, default=1_000_000, help="row events to mutate")
    parser.add_argument(
        "--segments", type=int, default=500, help="whole segments to mutate, of each recording"
    )
    parser.add_argument(
        "--samples", type=int, default=300, help="decoded events to compare, of each table"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.what == "record":
        from tests.fuzz.recording import main as record

        record()
        return 0
    if given.inside:
        from tests.fuzz.walk import walk

        sys.stdout.write(json.dumps(walk(given)) + "\n")
        return 0
    return outside(sys.argv[1:])


def outside(arguments: list[str]) -> int:
    """Run in a process where numba checks every index, and compiles to a folder of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-numba-") as folder:
        environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
        environment.setdefault("FUZZ_NUMBA_DIR", folder)
        environment["NUMBA_CACHE_DIR"] = environment["FUZZ_NUMBA_DIR"]
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", *arguments, "--inside"],
            env=environment, check=False, cwd=Path(__file__).resolve().parents[2],
        )  # fmt: skip
    seconds = time.monotonic() - began
    if done.returncode < 0:
        sys.stderr.write(f"The decoder crashed: signal {-done.returncode}.\n")
    sys.stderr.write(f"{seconds:.0f} s\n")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
