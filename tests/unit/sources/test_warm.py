"""What is compiled before a run is what the run uses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import importlib, json, sys
import numpy as np

decode = importlib.import_module(f"replicators.sources.{sys.argv[1]}.decode")
kernels = importlib.import_module(f"replicators.sources.{sys.argv[1]}.kernels")

def told():
    return {n: [str(s) for s in f.signatures] for n, f in vars(kernels).items() if hasattr(f, "signatures")}

kept = {}
real = decode.decode
def noted(head, body, segment):
    kept.update(head=head, body=body)
    return real(head, body, segment)
decode.decode = noted
decode.warm()
before = told()
list(real(kept["head"], np.array(np.frombuffer(kept["body"], np.uint8)), 0))
after = told()
print(json.dumps({n: after[n] for n in after if after[n] != before[n]}))
"""  # noqa: E501


@pytest.mark.parametrize("source", ["mysql", "postgresql"])
def test_a_segment_as_it_is_read_needs_no_other_compilation(source: str) -> None:
    """Guards the first decode of every installation: compiled for read-only bytes, each loop was
    compiled again by a run, for a minute."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, source], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {}
