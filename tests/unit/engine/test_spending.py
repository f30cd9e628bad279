"""What merges use of the target's budget is counted before they begin, over restarts
(`runners.engine.apply.spending`)."""

from __future__ import annotations

from typing import Any

import pytest

from replicators.connectors.budgets import Budget
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, MergeCost, MergeResult, TargetTable
from runners.engine.apply.merge import Merger
from runners.engine.apply.spending import Spending
from runners.engine.store.protocol import MemoryStore
from tests.unit.engine.changes import SCHEMA

TABLE = SCHEMA.id
BUDGET = Budget(a_table=10, in_all=100_000, noun="load jobs")
NOW = 3600.0 * 500_000
BATCH = FoldedBatch(SCHEMA, (), 7, 0)


class Target:
    """Loads a file by each of three jobs."""

    is_broken = False

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        if self.is_broken:
            raise ReplicationError("target:unreachable")
        return MergeResult(True, "u", MergeCost(units=3, scanned_bytes=84_000, is_pruned=False))


def merging(store: MemoryStore, budget: Budget | None) -> tuple[Any, Spending, Target]:
    """A merge of the table, in a run that just started."""
    target, nothing = Target(), None
    spending = Spending(store, budget, lambda: NOW)
    merger = Merger(
        nothing, target, store, nothing, "r1", nothing, nothing, spending,  # type: ignore[arg-type]
    )  # fmt: skip
    return lambda: merger._commit(TargetTable(TABLE, "r1", 1), BATCH), spending, target


def test_the_count_is_stored_and_goes_on_after_a_restart() -> None:
    """Guards `Table.spent`: a run that restarts often would use up the day's jobs unnoticed."""
    store = MemoryStore([TABLE])
    merge, spending, _ = merging(store, BUDGET)
    assert spending.seconds(TABLE) == 0
    merge()
    assert sum(store.table(TABLE).spent.values()) == 3
    assert store.costs[TABLE] == MergeCost(3, 84_000, is_pruned=False)
    first = spending.seconds(TABLE)
    assert first == pytest.approx(3 * 4320 * 3 / 7), "each of the three jobs waits"
    merge, spending, _ = merging(store, BUDGET)
    merge()
    assert sum(store.table(TABLE).spent.values()) == 6
    assert spending.seconds(TABLE) > first


def test_a_merge_that_fails_is_counted_too() -> None:
    """Guards `begin`: failed load jobs count at Google, and a crash leaves no time to count."""
    store = MemoryStore([TABLE])
    merge, _, target = merging(store, BUDGET)
    target.is_broken = True
    with pytest.raises(ReplicationError):
        merge()
    assert sum(store.table(TABLE).spent.values()) == 1


def test_without_a_budget_nothing_is_counted_and_nobody_waits() -> None:
    store = MemoryStore([TABLE])
    merge, spending, _ = merging(store, None)
    merge()
    assert store.table(TABLE).spent == {}
    assert spending.seconds(TABLE) == 0
    assert store.costs[TABLE].scanned_bytes == 84_000
