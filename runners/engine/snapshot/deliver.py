"""One table's snapshot for a `ChangeSink`: tasks read the chunks and write them to the target
directly, as rows that were read. There is no staging place. The next try's `begin` discards an
interrupted try; each try has its own generation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, ChunkReader, SnapshotSession
from replicators.connectors.target import BatchKind, ChangeBatch, ChangeSink, TargetTable
from runners.engine import failpoints
from runners.engine.settings import RunnerSettings
from runners.engine.sizes import Limits
from runners.engine.snapshot.layout import check_place, layout
from runners.engine.snapshot.unsupported import SupportedRows
from runners.engine.store.copies import CopyRow
from runners.engine.store.protocol import Store

CHUNKS_A_BATCH = 8


@dataclass(frozen=True, slots=True)
class ChunkLane:
    """A `Lane` that reads a chunk of the source: all its rows have one `sequence`, and were read
    `at` (seconds)."""

    number: int
    first: int
    last: int
    rows: int
    chunk: Chunk
    reader: ChunkReader
    schema: TableSchema
    position: int
    at: float
    limits: Limits

    def read(self) -> Iterator[pa.RecordBatch]:
        """The chunk's rows; `source:value-unsupported` where the neutral types can't carry one."""
        supported = SupportedRows(self.reader, quarantines=False, limits=self.limits)
        for batch in supported(self.chunk, self.schema):
            yield self._as_read(batch)

    def _as_read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        wanted, rows = change_schema(self.schema), batch.num_rows
        values = {
            "_sequence": self.last,
            "_op": int(Op.READ),
            "_committed_at": round(self.at * 1_000_000),
            "_transaction": 0,
            "_position": self.position,
            "_unchanged": None,
            "_before": None,
        }
        arrays = [
            pa.repeat(pa.scalar(values[f.name], f.type), rows)
            if f.name in values
            else batch.column(f.name).cast(f.type)
            for f in wanted
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=wanted)


class SinkSnapshotter:
    """Delivers tables inside one consistent snapshot. `now` is the source's clock; `on_progress`
    hears of every batch."""

    def __init__(
        self,
        sink: ChangeSink,
        session: SnapshotSession,
        reader: ChunkReader,
        settings: RunnerSettings,
        store: Store,
        *,
        now: Callable[[], float],
        on_progress: Callable[[TableSchema, int], None] = lambda _, rows: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._sink = sink
        self._session = session
        self._reader = reader
        self._settings = settings
        self._store = store
        self._now = now
        self._on_progress = on_progress
        self._should_stop = should_stop

    def find(self, table: TargetTable, schema: TableSchema) -> CopyRow | None:
        """No snapshot resumes in a later consistent snapshot."""
        return None

    def copy(
        self,
        table: TargetTable,
        schema: TableSchema,
        sequence: int,
        known: CopyRow | None = None,
        *,
        quarantines: bool = False,
        resumes: bool = True,
        place: str | None = None,
    ) -> tuple[str, int] | None:
        """Deliver the table's rows of the consistent snapshot. Returns no UUID, and the number of
        rows; None where a stop was asked. `source:snapshot-lost` where the consistent snapshot was
        lost. Later changes never get a time before this copy's, as `ChangeBatch` says."""
        place = layout(self._session, schema) if place is None else place
        check_place(self._session, schema, place, self._store)
        at = self._now()
        planned = self._session.plan(schema, rows_per_chunk=self._settings.rows_per_chunk)
        self._sink.begin(table, schema)
        failpoints.hit("snapshot_begun")
        lanes = [self._lane(c, schema, sequence, at) for c in planned]
        total, rows = sum(c.rows_estimated for c in planned), 0
        for first in range(0, len(lanes), CHUNKS_A_BATCH):
            self._tell(schema, rows, total)
            if self._should_stop():
                return None
            part = tuple(lanes[first : first + CHUNKS_A_BATCH])
            rows += self._deliver(table, schema, sequence, part)
            failpoints.hit("snapshot_part_delivered")
        self._tell(schema, rows, total)
        if self._should_stop():
            return None
        check_place(self._session, schema, place, self._store)
        self._store.table_progress(table.source, resolved_at=at)
        failpoints.hit("snapshot_delivered")
        return "", rows

    def _lane(self, chunk: Chunk, schema: TableSchema, sequence: int, at: float) -> ChunkLane:
        return ChunkLane(
            number=chunk.number,
            first=sequence,
            last=sequence,
            rows=chunk.rows_estimated,
            chunk=chunk,
            reader=self._reader,
            schema=schema,
            position=self._session.point.position.ordinal,
            at=at,
            limits=Limits(self._settings.row_limit_bytes),
        )

    def _deliver(
        self, table: TargetTable, schema: TableSchema, sequence: int, lanes: Sequence[ChunkLane]
    ) -> int:
        batch = ChangeBatch(BatchKind.SNAPSHOT, schema, sequence, sequence, tuple(lanes))
        try:
            return self._sink.deliver(table, batch)
        except Exception as err:
            if not self._session.is_alive():
                raise ReplicationError("source:snapshot-lost") from err
            raise

    def _tell(self, schema: TableSchema, rows: int, total: int) -> None:
        self._store.record_snapshot_rows(schema.id, rows, max(total, rows) if total else None)
        self._on_progress(schema, 0)
