"""Compiles the loops that would be compiled at first use, so that no run waits for that: `python -m
runners.engine.tasks.warm` at set-up."""

from __future__ import annotations

import importlib
import sys
import time

import numpy as np

from replicators.connectors import registry
from runners.engine.fold.history import replay_history
from runners.engine.fold.mirror import replay
from runners.engine.fold.no_inserts import replay_stays
from runners.engine.fold.soft_delete import replay_soft


def warm() -> None:
    """Compile, or load from the cache, the loops of the fold, of every source's decoder and
    chunk reader, and of the targets' writers."""
    empty, none = np.zeros(0, np.int64), np.zeros((0, 0), np.uint8)
    op = np.zeros(0, np.int8)
    replay(op, empty, empty, none, 0)
    replay_soft(op, empty, empty, np.zeros(0, np.uint8), none, 0)
    replay_stays(op, empty, empty, none, 0, 0)
    replay_history(op, empty, empty, none, empty, empty, 0)
    modules = [m for source in registry.sources().values() for m in source.task_modules]
    modules += [m for target in registry.targets().values() for m in target.task_modules]
    for name in modules:
        _warm_module(name)


def _warm_module(name: str) -> None:
    """Warm one module. A fault of another package's module is reported but stops no set-up: its
    runs only begin later."""
    try:
        module = importlib.import_module(name)
        getattr(module, "warm", lambda: None)()
    except Exception as err:
        if name.startswith("replicators."):
            raise
        sys.stderr.write(f"{name} is not compiled beforehand: {type(err).__name__}: {err}\n")


if __name__ == "__main__":
    began = time.monotonic()
    warm()
    sys.stdout.write(f"Compiled in {time.monotonic() - began:.0f} s.\n")
