"""Compiles what is compiled at first use, so that no run waits for it: `python -m runners.engine.warm` at set-up."""

from __future__ import annotations

import importlib
import sys
import time

import numpy as np

from replicators.connectors import registry
from runners.engine.fold import replay


def warm() -> None:
    """Compile, or load from the cache, the loops of the fold and of every source's decoder and chunk reader."""
    empty = np.zeros(0, np.int64)
    replay(np.zeros(0, np.int8), empty, empty, np.zeros((0, 0), np.uint8), 0)
    for source in registry.sources().values():
        for path in filter(None, (source.decoder, source.chunk_reader)):
            module = importlib.import_module(path.partition(":")[0])
            getattr(module, "warm", lambda: None)()


if __name__ == "__main__":
    began = time.monotonic()
    warm()
    sys.stdout.write(f"Compiled in {time.monotonic() - began:.0f} s.\n")
