"""Up to which commit time each table of a `ChangeSink` is resolved. It combines the heartbeat's
knowledge of the log with what is delivered.

A mark is recorded before the target hears of it, so it never goes back. After a crash, or when the
source's clock is set back, a table's next mark is still later than every mark that the target may
have heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from replicators.connectors.model.changes import last_sequence
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import ChangeSink, Resolved
from runners.engine import failpoints
from runners.engine.apply.refused import note_refused
from runners.engine.changelog.backlog import Backlog
from runners.engine.store.protocol import Store, TableRow, TableState, is_live
from runners.engine.store.target_table import target_table

SETTLE_SECONDS = 2.0
"""A source stamps a transaction before it writes it. So a transaction that is stamped just before a
heartbeat may lie behind it in the log."""


class Resolver:
    """`marks`: ascending pairs (segment, source's time). Everything committed until that time is
    decoded up to the end of that segment."""

    def __init__(
        self,
        sink: ChangeSink,
        store: Store,
        backlog: Backlog,
        replicator: str,
        marks: Callable[[], Sequence[tuple[int, float]]],
        every_seconds: float,
    ) -> None:
        self._sink = sink
        self._store = store
        self._backlog = backlog
        self._replicator = replicator
        self._marks = marks
        self._every = every_seconds

    def due(self, row: TableRow) -> Resolved | None:
        """The mark to report for the table now. None where it is too early, or nothing new is
        known."""
        if not (is_live(row) and row.is_snapshot_done and row.state is TableState.REPLICATING):
            return None
        marks = self._marks()
        # Asked after the marks: what was decoded before them is in the backlog by now.
        is_level = self._backlog.oldest(row.id) is None
        known = [
            at for segment, at in marks if is_level or last_sequence(segment) <= row.merged_sequence
        ]
        at = (known[-1] if known else 0.0) - SETTLE_SECONDS
        if at - row.resolved_at < self._every:
            return None
        return Resolved(row.merged_sequence, at)

    def record(self, marks: Mapping[TableId, Resolved]) -> None:
        """Record marks before they are reported."""
        self._store.record_resolved({table: mark.at for table, mark in marks.items()})
        failpoints.hit("resolved_recorded")

    def tell(self, row: TableRow, mark: Resolved) -> None:
        """Report a recorded mark to the target."""
        self._sink.resolved(target_table(self._replicator, row), mark)
        failpoints.hit("resolved_reported")
        note_refused(self._sink, self._store, self._replicator, row)
