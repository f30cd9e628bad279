"""Mutated real logs against both decoders: no crash, no read past an end, no wrong row. `python -m
tests.fuzz` does the same for as long as one likes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]
SEED = os.environ.get("FUZZ_SEED", "1")
ROOT = Path(__file__).resolve().parents[2]
FEW = 8
"""Compiling as the product does takes most of the time of so few. The bounds are the same without
optimisation."""


@pytest.mark.parametrize(
    ("what", "thousands"),
    [
        ("postgresql", FEW),
        pytest.param("mysql", FEW, marks=pytest.mark.long),
        pytest.param("postgresql", 80, marks=pytest.mark.long),
        pytest.param("mysql", 80, marks=pytest.mark.long),
    ],
)
def test_mutated_events_are_borne(tmp_path: Path, what: str, thousands: int) -> None:
    """Guards every bound of the compiled loops, in a process where numba checks each index, and the
    checksums: without either, the run ends with an error. A slow reader of its own finds rows that
    were decoded wrongly."""
    sizes = {"events": 1000 * thousands, "segments": 3 * thousands // 2, "samples": 100}
    numbers = [word for name, n in sizes.items() for word in (f"--{name}", str(n))]
    numbers += ["--seed", SEED]
    compiled = {"NUMBA_OPT": "0"} if thousands == FEW else {}
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", what, *numbers],
        env={**os.environ, "FUZZ_NUMBA_DIR": str(tmp_path), **compiled}, capture_output=True,
        text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["events"] > 950 * thousands
    assert seen["outcomes"]["decoded"] > 25 * thousands
    assert seen["outcomes"]["refused: damaged rows"] > 25 * thousands
    assert seen["values_compared"] > 500
    assert seen["segments"]["tables"] > thousands // 4
