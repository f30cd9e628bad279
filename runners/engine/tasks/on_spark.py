"""The product's tasks: Spark's. Its twin for tests, without a JVM, is `tasks.local`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from runners.engine.tasks.errors import from_tasks, relayed
from runners.engine.tasks.spark import DECODE_POOL, in_pool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
RESULT = "at int, result binary"


class SparkTasks:
    """`Tasks` on a Spark session: a partition for each item. Thread safe."""

    def __init__(self, spark: SparkSession, folder: str = "") -> None:
        self.spark = spark
        self.folder = folder

    def map(
        self, function: Callable[[T], R], items: Sequence[T], *, is_urgent: bool = False
    ) -> list[R]:
        """One Spark job."""
        if not items:
            return []
        frame = self.spark.range(0, len(items), 1, len(items))
        pool = in_pool(self.spark, DECODE_POOL) if is_urgent else nullcontext()
        with pool, from_tasks():
            rows = frame.mapInArrow(relayed(_job(function, items)), RESULT).collect()
        results = {row["at"]: row["result"] for row in rows}
        return [pickle.loads(results[at]) for at in range(len(items))]  # noqa: S301 (our own tasks')


def _job(
    function: Callable[[T], R], items: Sequence[T]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                result = pickle.dumps(function(items[at]))
                columns = [pa.array([at], pa.int32()), pa.array([result], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["at", "result"])

    return run
