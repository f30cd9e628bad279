"""When a target table is maintained, and the text for what maintenance did (CORRECTNESS 32)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.errors import ends_run

FIRST_SECONDS, LAST_SECONDS = 60.0, 3600.0
LOST = frozenset(
    {"target:table-missing", "target:table-replaced", "target:table-behind", "target:table-ahead"}
)
"""Faults of the table itself: merges would find them too."""


def ends_more(err: Exception) -> bool:
    """Whether a fault of maintenance is a fault of the table or of the run. All other faults only
    leave files as they are: the table's merges still work, so it continues."""
    if not isinstance(err, ReplicationError):
        return False
    return err.code in LOST or ends_run(err)


class Upkeep:
    """Counts each table's merges since its last maintenance. Each table may be used from one thread
    at a time."""

    def __init__(self, every: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._merges: Counter[TableId] = Counter()
        self._failures: Counter[TableId] = Counter()
        self._after: dict[TableId, float] = {}

    def is_due(self, table: TableId, *, has_work: bool) -> bool:
        """Whether maintenance is due. A table that has work waits for a quiet moment, but not for
        ever."""
        enough = self._merges[table] >= (2 * self._every if has_work else self._every)
        return enough and self._clock() >= self._after.get(table, 0.0)

    def tables(self) -> set[TableId]:
        """The tables that were merged since their last maintenance."""
        return {*self._merges}

    def merged(self, table: TableId) -> None:
        """The table got one more commit."""
        self._merges[table] += 1

    def done(self, table: TableId) -> None:
        """The table's maintenance is done."""
        for known in (self._merges, self._failures, self._after):
            known.pop(table, None)

    def failed(self, table: TableId) -> float:
        """Seconds until the next try: twice as many after each failure."""
        seconds = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._failures[table], 10))
        self._failures[table] += 1
        self._after[table] = self._clock() + seconds
        return seconds


def maintenance_text(facts: dict[str, Any]) -> str:
    """What a maintenance did, in words for the log: `: rewritten data files 12`. Zero counts are
    left out."""
    parts = [p if isinstance(p, dict) else {name: p} for name, p in facts.items()]
    found = [
        f"{name.removesuffix('_count').replace('_', ' ')} {value}"
        for part in parts
        for name, value in part.items()
        if value
    ]
    return ": " + ", ".join(found) if found else ""
