"""What Spark forks its Python workers from (`spark.python.daemon.module`): `pyspark.daemon` that
has imported what the run's tasks need, and loaded the compiled loops, so that a worker begins at
once. Spark ends workers that were idle for a minute, so it is not only for the start."""

from __future__ import annotations

import importlib
import os
import zipimport
from collections.abc import Iterable
from contextlib import suppress

from runners.engine.tasks.errors import freeze_modules

MODULES = "REPLICATOR_TASK_MODULES"
"""The environment variable that names the modules, with commas between."""


def load_all(names: Iterable[str]) -> None:
    """Import each, and load what it compiled. What can't be imported here is told by what needs
    it."""
    for name in filter(None, names):
        with suppress(ImportError):
            module = importlib.import_module(name)
            getattr(module, "warm", lambda: None)()


def keep_archives() -> None:
    """Archives on the path are read once. Spark's worker has every importer look again at the start
    of each task (`importlib.invalidate_caches`), and Python reads all names of an archive then,
    once for each package in it: with PySpark's own archive 0.2 s of CPU a task. What Spark ships
    does not change while it runs."""
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


if __name__ == "__main__":
    from pyspark.daemon import manager

    keep_archives()
    load_all(os.environ.get(MODULES, "").split(","))
    freeze_modules()
    manager()
