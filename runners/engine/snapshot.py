"""One table's snapshot: chunks read in Spark tasks into the target's staging place, published in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import TableSchema
from replicators.connectors.source import Chunk, ChunkReader, SnapshotSession
from replicators.connectors.target import TargetTable, TargetWriter
from runners.engine import failpoints
from runners.engine.settings import RunnerSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNKS_A_LOAD = 8


def spark_schema(schema: TableSchema) -> Any:
    """The Spark schema of a row image."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema.arrow_schema(), prefer_timestamp_ntz=True)


def _chunk_task(
    read: ChunkReader, chunks: Sequence[Chunk], schema: TableSchema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from read(chunks[index], schema)

    return run


def chunk_frame(
    spark: SparkSession, read: ChunkReader, chunks: Sequence[Chunk], schema: TableSchema
) -> DataFrame:
    """A DataFrame whose partitions are the chunks."""
    frame = spark.range(0, len(chunks), 1, len(chunks))
    return frame.mapInArrow(_chunk_task(read, chunks, schema), spark_schema(schema))


class Snapshotter:
    """Copies tables inside one consistent view."""

    def __init__(
        self,
        spark: SparkSession,
        writer: TargetWriter,
        session: SnapshotSession,
        reader: ChunkReader,
        settings: RunnerSettings,
        *,
        on_rows: Callable[[TableSchema, int, int | None], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._spark = spark
        self._writer = writer
        self._session = session
        self._reader = reader
        self._settings = settings
        self._on_rows = on_rows
        self._should_stop = should_stop

    def copy(
        self, table: TargetTable, schema: TableSchema, sequence: int
    ) -> tuple[str, int] | None:
        """Copy the table and publish it with `sequence` as its token: its UUID and its rows; None where a stop was asked
        (nothing is published then). `source:snapshot-lost` where the view went away."""
        chunks = self._session.plan(schema, rows_per_chunk=self._settings.rows_per_chunk)
        total = sum(c.rows_estimated for c in chunks) or None
        self._writer.begin_snapshot(table, schema)
        self._on_rows(schema, 0, total)
        failpoints.hit("snapshot_begun")
        rows = 0
        for at in range(0, len(chunks), CHUNKS_A_LOAD):
            if self._should_stop():
                return None
            rows += self._load(table, schema, chunks[at : at + CHUNKS_A_LOAD])
            self._on_rows(schema, rows, total)
            failpoints.hit("snapshot_loaded")
        uuid = self._writer.publish_snapshot(table, schema, sequence)
        failpoints.hit("snapshot_published")
        return uuid, rows

    def _load(self, table: TargetTable, schema: TableSchema, chunks: Sequence[Chunk]) -> int:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        seen = Observation()
        frame = chunk_frame(self._spark, self._reader, chunks, schema)
        frame = frame.observe(seen, F.count(F.lit(1)).alias("rows"))
        try:
            self._writer.load_snapshot(table, schema, frame)
        except Exception as err:
            if not self._session.is_alive():
                raise ReplicationError("source:snapshot-lost") from err
            raise
        return int(seen.get["rows"])
