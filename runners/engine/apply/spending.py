"""Counts what tables use of the target's budget, in the store, and says how long a table must wait
for its next merge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from replicators.connectors.budgets import Budget, Use, counted, table_wait, used
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import MergeCost
from runners.engine.store.protocol import Store

SUM_SECONDS = 60.0


class Spending:
    """Thread safe. Without a budget nothing is counted, and nobody waits."""

    def __init__(
        self, store: Store, budget: Budget | None, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._budget = budget
        self._clock = clock
        self._lock = threading.Lock()
        rows = store.tables() if budget is not None else []
        self._spent = {row.id: row.spent for row in rows if row.spent}
        self._units: dict[TableId, int] = {}
        self._use = Use()
        self._summed_at = float("-inf")

    def begin(self, table: TableId) -> None:
        """A merge begins. One unit is recorded beforehand: a merge that a crash cuts off, or that
        fails, has used it too."""
        self._add(table, 1)

    def end(self, table: TableId, cost: MergeCost | None) -> None:
        """A merge ended; record the rest of what it used."""
        if cost is None:
            return
        self._units[table] = max(1, cost.units)
        self._add(table, cost.units - 1)
        self._store.record_cost(table, cost)

    def seconds(self, table: TableId) -> float:
        """The least time between two merges of the table. A merge that uses several units waits for
        each of them."""
        if self._budget is None:
            return 0.0
        now = self._clock()
        of_table = used(self._spent.get(table, {}), now)
        use = self._in_all(now)
        wait = table_wait(self._budget, of_table, use.in_all, use.tables)
        return wait * self._units.get(table, 1)

    def _add(self, table: TableId, number: int) -> None:
        if self._budget is None or number <= 0:
            return
        with self._lock:
            spent = counted(self._spent.get(table, {}), number, self._clock())
            self._spent[table] = spent
        self._store.table_progress(table, spent=spent)

    def _in_all(self, now: float) -> Use:
        """The sum over all tables. It may be a minute old: a minute is little of a day."""
        with self._lock:
            if not 0 <= now - self._summed_at < SUM_SECONDS:
                self._use = Use.of(self._spent.values(), now)
                self._summed_at = now
            return self._use
