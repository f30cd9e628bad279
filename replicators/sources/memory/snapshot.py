"""Consistent snapshots of the in-memory source. A chunk carries its rows itself, so that a task in
another process can read it."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.filters.arrow import matches
from replicators.connectors.filters.types import bind
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.poll import PollReader
from replicators.connectors.snapshot import Chunk, SnapshotPoint, SnapshotWait
from replicators.sources.memory.catalog import require_reachable
from replicators.sources.memory.database import database
from replicators.sources.memory.params import MemoryParams


class MemorySession(Closing):
    """`SnapshotSession`: holds the rows as they were when it was made."""

    def __init__(self, params: MemoryParams) -> None:
        require_reachable(params)
        held = database(params.host)
        end, self._rows = held.view()
        self.point = SnapshotPoint("", held.position(end))

    def is_alive(self) -> bool:
        return True

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        """Consecutive chunks. Each holds its rows as Arrow IPC bytes, encoded as text."""
        rows = pa.Table.from_pylist(self._rows.get(table.id, []), schema=table.arrow_schema())
        if table.filter:
            rows = rows.filter(matches(bind(table.filter, table), rows))
        starts = range(0, max(rows.num_rows, 1), rows_per_chunk)
        parts = [rows.slice(at, rows_per_chunk) for at in starts]
        return [
            Chunk(table.id, number, _text(part), part.num_rows) for number, part in enumerate(parts)
        ]

    def close(self) -> None:
        """Nothing is open."""


def _text(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode()


class MemoryChunks:
    """`ChunkReader`: returns the rows that the chunk carries."""

    def __init__(self, params: MemoryParams, token: str) -> None:
        self._params = params

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        yield from pa.ipc.open_stream(base64.b64decode(chunk.spec))


def snapshot_first(
    params: MemoryParams, name: str, reader: PollReader, wait: SnapshotWait | None = None
) -> MemorySession:
    """Open the first snapshot. The source keeps all changes after its position."""
    session = MemorySession(params)
    database(params.host).hold(name, session.point.position)
    return session


def snapshot_again(
    params: MemoryParams, name: str, wait: SnapshotWait | None = None, after: Position | None = None
) -> MemorySession:
    """Open a snapshot of the current rows."""
    return MemorySession(params)
