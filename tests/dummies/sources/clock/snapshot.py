"""The last hour, as a consistent snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from replicators.sources.clock.catalog import require_going
from replicators.sources.clock.params import ClockParams
from replicators.sources.clock.poll import minute_now, row

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.snapshot import Chunk, SnapshotPoint, SnapshotWait


class ClockSession(Closing):
    """`SnapshotSession`: what has been struck does not change, so it stays good."""

    def __init__(self, params: ClockParams) -> None:
        require_going(params)
        self.point = SnapshotPoint("", Position(minute_now()))

    def is_alive(self) -> bool:
        return True

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        end = self.point.position.ordinal
        return [Chunk(table.id, 0, [end - 59, end], 60)]


class ClockChunks:
    """`ChunkReader`: the minutes of the chunk."""

    def __init__(self, params: ClockParams, token: str) -> None:
        self._params = params

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        first, last = chunk.spec
        rows = [row(m) for m in range(first, last + 1)]
        yield from pa.Table.from_pylist(rows, schema.arrow_schema()).to_batches()


def snapshot_first(
    params: ClockParams, name: str, reader: Any, wait: SnapshotWait | None = None
) -> ClockSession:
    """The changes begin after the last minute."""
    return ClockSession(params)


def snapshot_again(
    params: ClockParams,
    name: str,
    wait: SnapshotWait | None = None,
    after: Position | None = None,
) -> ClockSession:
    """The last hour, as of now."""
    return ClockSession(params)
