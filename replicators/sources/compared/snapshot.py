"""Copies of tables: all rows after the last delivery that was compared. Where there is no delivery
of a table yet, its copy is empty, and its first delivery comes as inserts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.poll import PollReader
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, SnapshotPoint, SnapshotWait
from replicators.sources.compared.journal import Compared, Journal, ordinal
from replicators.sources.compared.params import ComparedParams
from replicators.sources.compared.poll import ComparedPoll, reader_of

BATCH_ROWS = 1 << 16


class ComparedSession(Closing):
    """`OwnSnapshotSession` over the journal as it is now."""

    def __init__(self, params: ComparedParams, name: str) -> None:
        self._journal = Journal(params.folder_of(name)).read()
        self._planned: dict[TableId, Compared] = {}
        self.point = SnapshotPoint(self._journal.folder, self._journal.end)

    def is_alive(self) -> bool:
        """Whether the files of the planned tables are still kept."""
        there = {d.number for d in Journal(self._journal.folder).read().deliveries}
        return all(d.number in there for d in self._planned.values())

    def point_of(self, table: TableSchema, *, is_exact: bool) -> SnapshotPoint:
        """The end of the table's last delivery. The first one of a new table is compared now."""
        reader = reader_of(self._journal.folder)
        if self._journal.last_of(table.id) is None and reader is not None:
            reader.compare_first([table])
            self._journal.read()
        last = self._last(table.id)
        if last is None:
            return self.point
        return SnapshotPoint(self.point.token, self._journal.at(ordinal(last.number + 1)))

    def _last(self, table: TableId) -> Compared | None:
        """The delivery whose rows are copied: the same at each question."""
        last = self._planned.get(table) or self._journal.last_of(table)
        if last is not None:
            self._planned[table] = last
        return last

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        """Runs of rows of each file."""
        last = self._last(table.id)
        if last is None:
            return [Chunk(table.id, 0, None, 0)]
        runs: list[tuple[str, int, int]] = [
            (portion.path, start, min(rows_per_chunk, portion.rows - start))
            for portion in last.rows
            for start in range(0, portion.rows, rows_per_chunk)
        ]
        return [Chunk(table.id, n, run, run[2]) for n, run in enumerate(runs)] or [
            Chunk(table.id, 0, None, 0)
        ]

    def close(self) -> None:
        """Nothing is open."""


class ComparedChunks:
    """`ChunkReader`: rows of a file of the state."""

    def __init__(self, params: ComparedParams, token: str) -> None:
        self._token = token

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        """The rows; `source:snapshot-lost` where their file was removed."""
        if chunk.spec is None:
            yield _none(schema)
            return
        path, start, rows = chunk.spec
        try:
            with files.open_file(path) as file:
                yield from _read(pq.ParquetFile(file), start, rows, schema)
        except FileNotFoundError as err:
            raise ReplicationError("source:snapshot-lost") from err


def _none(schema: TableSchema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema.arrow_schema())


def _read(
    file: pq.ParquetFile, start: int, rows: int, schema: TableSchema
) -> Iterator[pa.RecordBatch]:
    """The rows from `start` on, from the row groups that hold them."""
    first, place = 0, 0
    groups: list[int] = []
    for number in range(file.num_row_groups):
        size = file.metadata.row_group(number).num_rows
        if place + size > start and place < start + rows:
            first = place if not groups else first
            groups.append(number)
        place += size
    skip, left = start - first, rows
    for batch in file.iter_batches(BATCH_ROWS, row_groups=groups):
        taken = batch.slice(skip, left)
        skip = max(0, skip - batch.num_rows)
        if taken.num_rows:
            left -= taken.num_rows
            yield _as_declared(taken, schema)
        if not left:
            return


def _as_declared(batch: pa.RecordBatch, schema: TableSchema) -> pa.RecordBatch:
    """The batch with the columns of `schema`; NULL for one that is newer than the rows."""
    names = batch.schema.names
    wanted = schema.arrow_schema()
    columns = [
        batch.column(f.name).cast(f.type) if f.name in names else pa.nulls(batch.num_rows, f.type)
        for f in wanted
    ]
    faulty, reason = (f.name for f in FAULT_FIELDS)
    bits = batch.column(faulty)
    if bits.null_count < len(bits):
        old = names[: names.index(faulty)]
        columns += [_moved(bits, old, wanted.names), batch.column(reason)]
        wanted = pa.schema([*wanted, *FAULT_FIELDS])
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _moved(bits: pa.Array, old: list[str], new: list[str]) -> pa.Array:
    """The marks of faulty values, at the places that the columns have now. Faults are few."""
    if old == new:
        return bits
    found: list[bytes | None] = []
    for mark in bits.to_pylist():
        names = [n for i, n in enumerate(old) if mark and mark[i >> 3] & (1 << (i & 7))]
        made = bytearray((len(new) + 7) // 8)
        for at in (new.index(n) for n in names if n in new):
            made[at >> 3] |= 1 << (at & 7)
        found.append(bytes(made) if any(made) else None)
    return pa.array(found, bits.type)


def snapshot_first(
    params: ComparedParams, name: str, reader: PollReader, wait: SnapshotWait | None = None
) -> ComparedSession:
    """Make the journal, and compare the deliveries that are there already: the copies have their
    rows."""
    Journal(params.folder_of(name)).begin()
    if isinstance(reader, ComparedPoll):
        reader.compare_first()
    return ComparedSession(params, name)


def snapshot_again(
    params: ComparedParams,
    name: str,
    wait: SnapshotWait | None = None,
    after: Position | None = None,
) -> ComparedSession:
    """The rows after the last delivery that was compared."""
    return ComparedSession(params, name)
