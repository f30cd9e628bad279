"""When a table that has changes is merged: at its interval; while the log is far ahead of its decoding, not before more of it is
decoded, since one merge of many changes costs less than several. Decoding has the cores meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

from replicators.connectors.schema import TableId
from runners.engine.backlog import Backlog

AHEAD_BYTES = 16 << 20
"""Of segments that wait for decoding: far more than what a second brings where decoding keeps up."""
ENOUGH_BYTES = 64 << 20
"""Of a table's change files: a merge that does not get cheaper by waiting."""
HOLD_SECONDS = 5.0


class Pacing:
    """For one thread. Call `turn` before a look at the tables, `is_due` for each with changes, `merged` where its merge begins."""

    def __init__(
        self, backlog: Backlog, merge_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._backlog = backlog
        self._merge_seconds = merge_seconds
        self._clock = clock
        self._held: dict[TableId, float] = {}
        self._is_ahead = False

    def turn(self) -> None:
        """Ask how far the log is ahead: far, until nothing of it waits."""
        waiting = self._backlog.undecoded_bytes
        self._is_ahead = waiting >= AHEAD_BYTES or (self._is_ahead and waiting > 0)

    def is_due(self, table: TableId, merged_at: float) -> bool:
        """Whether the table's changes are to be merged now; it merged last at `merged_at`."""
        now = self._clock()
        if now - merged_at < self._merge_seconds:
            return False
        if not self._is_ahead or self._backlog.size_bytes(table) >= ENOUGH_BYTES:
            return True
        return now - self._held.setdefault(table, now) >= HOLD_SECONDS

    def merged(self, table: TableId) -> None:
        """What comes from now on is held for a time of its own."""
        self._held.pop(table, None)
