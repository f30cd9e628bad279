"""The twin of Spark's tasks for tests: threads of this process, and no JVM. The product never uses
it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pyspark import cloudpickle

T = TypeVar("T")
R = TypeVar("R")


class LocalTasks:
    """`Tasks` on threads. What a task gets and returns is pickled, as Spark does, so that nothing
    is shared by chance."""

    spark = None

    def __init__(self, threads: int = 2, folder: str = "") -> None:
        self._threads = threads
        self.folder = folder

    def map(
        self, function: Callable[[T], R], items: Sequence[T], *, is_urgent: bool = False
    ) -> list[R]:
        """Run all items on the threads."""
        work = cloudpickle.dumps((function, list(items)))
        with ThreadPoolExecutor(self._threads, "task") as pool:
            return list(pool.map(lambda at: _one(work, at), range(len(items))))


def _one(work: bytes, at: int) -> Any:
    function, items = pickle.loads(work)  # noqa: S301 (our own)
    return pickle.loads(pickle.dumps(function(items[at])))  # noqa: S301 (our own)
