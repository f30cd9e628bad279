"""What the clock has struck since."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from replicators.sources.clock.catalog import require_going
from replicators.sources.clock.params import ClockParams

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import Op
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.poll import Polled, TableChanges, polled_schema
from replicators.connectors.snapshot import SnapshotWait

AT_ONCE = 1000


def minute_now() -> int:
    """Minutes since 1970."""
    return int(time.time() // 60)


def row(minute: int) -> dict[str, object]:
    """The row of that minute, of any table."""
    at = datetime.fromtimestamp(60 * minute, UTC)
    return {"minute": minute, "at": at, "name": "ding"}


class ClockPoll(Closing):
    """`PollReader`: a position is a minute since 1970."""

    def __init__(self, params: ClockParams, name: str) -> None:
        self._params = params

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        require_going(self._params)

    def poll(self, after: Position, tables: Sequence[TableSchema], *, max_bytes: int) -> Polled:
        """A row a minute and table, each a transaction of its own."""
        require_going(self._params)
        now = minute_now()
        end = min(now, after.ordinal + AT_ONCE)
        minutes = range(after.ordinal + 1, end + 1)
        changes = tuple(TableChanges(t, _rows(t, minutes)) for t in tables if minutes)
        return Polled(Position(end), changes, has_more=end < now)

    def acknowledge(self, position: Position) -> None:
        """A clock forgets at once, and remembers everything."""


def _rows(table: TableSchema, minutes: range) -> pa.Table:
    reported = {"_op": int(Op.INSERT), "_unchanged": None, "_before": None}
    rows = [
        row(m) | reported | {"_committed_at": row(m)["at"], "_transaction": m, "_position": m - 1}
        for m in minutes
    ]
    return pa.Table.from_pylist(rows, polled_schema(table))
