"""When a table that has changes is merged: at its interval. While the source sends in bulk, or
decoding is far behind the log, the table waits until more is decoded, since one merge of many
changes costs less than several. Decoding has the cores meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from replicators.connectors.model.schema import TableId
from runners.engine.changelog.backlog import Backlog

AHEAD_BYTES, LEVEL_BYTES = 16 << 20, 1 << 20
"""Bytes of segments that wait for decoding. The first is far more than a second brings where
decoding keeps up; the second is about what a second brings."""
ENOUGH_BYTES = 64 << 20
"""Bytes of a table's change files: a merge of this size does not get cheaper by waiting."""
HOLD_SECONDS = 5.0


class Pacing:
    """Call `turn` before a look at the tables, `is_due` for each table with changes, and `begun`
    and `ended` for its merges. `ended` may be called from any thread. `spared`: the least seconds
    between two merges of a table that the target's budget allows. `is_in_bulk`: whether the source
    sends a backlog of its own."""

    def __init__(
        self,
        backlog: Backlog,
        merge_seconds: float,
        spared: Callable[[TableId], float] = lambda _: 0.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_in_bulk: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backlog = backlog
        self._merge_seconds = merge_seconds
        self._spared = spared
        self._clock = clock
        self._is_in_bulk = is_in_bulk
        self._held: dict[TableId, float] = {}
        self._ended: dict[TableId, float] = {}
        self._cut: set[TableId] = set()
        self._is_ahead = False

    def turn(self) -> None:
        """Check how far decoding is behind the log, and whether the source still sends in bulk. It
        counts as far behind until hardly anything waits."""
        waiting = self._backlog.undecoded_bytes
        most = LEVEL_BYTES if self._is_ahead else AHEAD_BYTES
        self._is_ahead = waiting >= most or self._is_in_bulk()

    def is_due(self, table: TableId) -> bool:
        """Whether the table's changes are to be merged now."""
        now = self._clock()
        since = now - self._ended.get(table, -math.inf)
        if since < self._spared(table):
            return False
        if table in self._cut:
            return True
        if since < self._merge_seconds:
            return False
        if not self._is_ahead or self._backlog.size_bytes(table) >= ENOUGH_BYTES:
            return True
        return now - self._held.setdefault(table, now) >= HOLD_SECONDS

    def begun(self, table: TableId) -> None:
        """A merge begins: later changes get their own hold time."""
        self._held.pop(table, None)
        self._cut.discard(table)

    def ended(self, table: TableId, *, is_cut: bool = False) -> None:
        """A merge ended. `is_cut`: it ended before other changes of the table that were there
        already, at a round's end, a schema change or the limit of one merge; these are merged at
        once."""
        self._ended[table] = self._clock()
        if is_cut:
            self._cut.add(table)
