"""The process that Spark forks its Python workers from (`spark.python.daemon.module`). It is
`pyspark.daemon` with the modules of the run's tasks imported and the compiled loops loaded, so that
a worker begins at once. Spark ends workers that were idle for a minute, so this helps not only at
the start."""

from __future__ import annotations

import importlib
import os
import resource
import zipimport
from collections.abc import Iterable
from contextlib import suppress

from runners.engine.tasks.errors import LIMIT, freeze_modules

MODULES = "REPLICATOR_TASK_MODULES"
"""The environment variable that names the modules, with commas between."""


def load_all(names: Iterable[str]) -> None:
    """Import each module, and load its compiled loops. If one can't be imported here, the code that
    needs it reports that."""
    for name in filter(None, names):
        with suppress(ImportError):
            module = importlib.import_module(name)
            getattr(module, "warm", lambda: None)()


def limit_memory(size: int) -> None:
    """Have this process and its workers get no more memory than that, each for itself: what asks
    for more gets a MemoryError. Memory of files counts not; that is the system's. 0: no limit."""
    if size:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def keep_archives() -> None:
    """Have archives on the path read only once. At the start of each task, Spark's worker makes
    every importer look again (`importlib.invalidate_caches`). Python then reads all names of an
    archive, once for each package in it: with PySpark's own archive 0.2 s of CPU a task. What Spark
    ships does not change while it runs."""
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


if __name__ == "__main__":
    from pyspark.daemon import manager

    keep_archives()
    load_all(os.environ.get(MODULES, "").split(","))
    freeze_modules()
    limit_memory(int(os.environ.get(LIMIT, "0")))
    manager()
