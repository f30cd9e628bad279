"""Mutated real logs against both decoders: no crash, no read past an end, no wrong row. `python -m tests.fuzz` does the same for as
long as one likes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
SEED = os.environ.get("FUZZ_SEED", "1")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("what", ["mysql", "postgresql"])
def test_mutated_events_are_borne(tmp_path: Path, what: str) -> None:
    """Guards every bound of the compiled loops, in a process where numba checks each index, and the checksums: without either, the
    run ends with an error. A slow reader of its own finds rows that were decoded wrongly."""
    numbers = ["--events", "80000", "--segments", "120", "--samples", "100", "--seed", SEED]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", what, *numbers],
        env={**os.environ, "FUZZ_NUMBA_DIR": str(tmp_path)}, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["events"] > 76_000
    assert seen["outcomes"]["decoded"] > 2_000
    assert seen["outcomes"]["refused: damaged rows"] > 2_000
    assert seen["values_compared"] > 500
    assert seen["segments"]["tables"] > 20
