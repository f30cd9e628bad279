"""One table's snapshot: chunks read in Spark tasks into the target's staging place, published in one step."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import TableSchema
from replicators.connectors.source import Chunk, ChunkReader, SnapshotSession
from replicators.connectors.target import SnapshotPlace, TargetTable, TargetWriter
from runners.engine import failpoints
from runners.engine.relay import from_tasks, relayed
from runners.engine.settings import RunnerSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNKS_A_JOB = 4
JOBS_AT_ONCE = 2


def _write_chunk(
    read: ChunkReader, chunk: Chunk, schema: TableSchema, place: SnapshotPlace
) -> tuple[str, int]:
    """Read one chunk straight into a Parquet file of the target's: its path and rows. A try's file has a name of its own."""
    path = f"{place.folder}/{chunk.number:08d}-{uuid.uuid4().hex[:12]}.parquet"
    rows = 0
    with pq.ParquetWriter(path, place.arrow, **place.options) as writer:
        for batch in read(chunk, schema):
            writer.write_table(pa.Table.from_batches([batch]).cast(place.arrow))
            rows += batch.num_rows
    return path, rows


def _file_task(
    read: ChunkReader, chunks: Sequence[Chunk], schema: TableSchema, place: SnapshotPlace
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                path, rows = _write_chunk(read, chunks[index], schema, place)
                yield pa.RecordBatch.from_pydict({"path": [path], "rows": [rows]})

    return run


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
        place = self._writer.snapshot_place(table, schema)
        paths: list[str] = []
        rows = 0
        for done in self._jobs(schema, chunks, place):
            for path, count in done:
                rows += count
                paths += [path] if count else []
            self._on_rows(schema, rows, total)
        if self._should_stop():
            return None
        self._writer.load_snapshot_files(table, schema, paths)
        failpoints.hit("snapshot_loaded")
        uuid = self._writer.publish_snapshot(table, schema, sequence)
        failpoints.hit("snapshot_published")
        return uuid, rows

    def _jobs(
        self, schema: TableSchema, chunks: Sequence[Chunk], place: SnapshotPlace
    ) -> Iterator[list[tuple[str, int]]]:
        """The files of one job after the other. The next job waits in Spark while one ends, so that no core idles; none is
        begun once a stop was asked for."""
        parts = [chunks[at : at + CHUNKS_A_JOB] for at in range(0, len(chunks), CHUNKS_A_JOB)]
        running: deque[Future[list[tuple[str, int]]]] = deque()
        with ThreadPoolExecutor(JOBS_AT_ONCE, "chunks") as pool:
            while parts or running:
                while parts and len(running) < JOBS_AT_ONCE and not self._should_stop():
                    running.append(pool.submit(self._read, schema, parts.pop(0), place))
                if not running:
                    return
                yield running.popleft().result()

    def _read(
        self, schema: TableSchema, chunks: Sequence[Chunk], place: SnapshotPlace
    ) -> list[tuple[str, int]]:
        """One job: its tasks write the target's files themselves; only their paths and rows come back."""
        frame = self._spark.range(0, len(chunks), 1, len(chunks))
        task = _file_task(self._reader, chunks, schema, place)
        try:
            with from_tasks():
                done = frame.mapInArrow(relayed(task), "path string, rows long").collect()
        except Exception as err:
            if not self._session.is_alive():
                raise ReplicationError("source:snapshot-lost") from err
            raise
        return [(r["path"], r["rows"]) for r in done]
