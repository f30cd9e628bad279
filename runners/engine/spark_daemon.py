"""What Spark forks its Python workers from (`spark.python.daemon.module`): `pyspark.daemon` that has imported what the run's tasks need, and
loaded the compiled loops, so that a worker begins at once. Spark ends workers that were idle for a minute, so it is not only for the start."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from contextlib import suppress

from runners.engine.relay import freeze_modules

MODULES = "REPLICATOR_TASK_MODULES"
"""The environment variable that names the modules, with commas between."""


def load_all(names: Iterable[str]) -> None:
    """Import each, and load what it compiled. What can't be imported here is told by what needs it."""
    for name in filter(None, names):
        with suppress(ImportError):
            module = importlib.import_module(name)
            getattr(module, "warm", lambda: None)()


if __name__ == "__main__":
    from pyspark.daemon import manager

    load_all(os.environ.get(MODULES, "").split(","))
    freeze_modules()
    manager()
