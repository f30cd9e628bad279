"""When the files of a target table are tidied up, and words for what that did (CORRECTNESS 32)."""

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
"""What is wrong with the table itself; merges would find it too."""


def ends_more(err: Exception) -> bool:
    """Whether a fault of the upkeep is one of the table, or of the run. All others only leave files
    as they are: a table whose merges work goes on."""
    if not isinstance(err, ReplicationError):
        return False
    return err.code in LOST or ends_run(err)


class Upkeep:
    """Counts each table's merges since it was tidied up last. For one table from one thread at a
    time."""

    def __init__(self, every: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._merges: Counter[TableId] = Counter()
        self._failures: Counter[TableId] = Counter()
        self._after: dict[TableId, float] = {}

    def is_due(self, table: TableId, *, has_work: bool) -> bool:
        """A table that has work waits for a quiet moment, but not for ever."""
        enough = self._merges[table] >= (2 * self._every if has_work else self._every)
        return enough and self._clock() >= self._after.get(table, 0.0)

    def tables(self) -> set[TableId]:
        """The tables that were merged since they were tidied up last."""
        return {*self._merges}

    def merged(self, table: TableId) -> None:
        """One commit more."""
        self._merges[table] += 1

    def done(self, table: TableId) -> None:
        """It is tidied up."""
        for known in (self._merges, self._failures, self._after):
            known.pop(table, None)

    def failed(self, table: TableId) -> float:
        """Seconds until it is tried again: twice as many each time."""
        seconds = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._failures[table], 10))
        self._failures[table] += 1
        self._after[table] = self._clock() + seconds
        return seconds


def figures_told(facts: dict[str, Any]) -> str:
    """What a maintenance did, in words for the log: `: rewritten data files 12`; what is zero is
    left out."""
    parts = [p if isinstance(p, dict) else {name: p} for name, p in facts.items()]
    found = [
        f"{name.removesuffix('_count').replace('_', ' ')} {value}"
        for part in parts
        for name, value in part.items()
        if value
    ]
    return ": " + ", ".join(found) if found else ""
