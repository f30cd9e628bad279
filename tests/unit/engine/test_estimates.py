"""The sizes of tables that wait for their copy are asked for once, and cost nothing else."""

from __future__ import annotations

import pytest

from replicators.connectors.model.schema import TableId
from replicators.sources.memory import PLUGIN
from replicators.sources.memory.params import MemoryParams
from replicators.targets.lakehouse import PLUGIN as LAKEHOUSE
from runners.engine.job import Job
from runners.engine.snapshot.estimates import estimate_rows
from runners.engine.store.protocol import MemoryStore

ORDERS, CUSTOMERS, GONE = (TableId("shop", n) for n in ("orders", "customers", "gone"))


def _job(fault: str = "none") -> Job:
    params = MemoryParams(host="anywhere", fault=fault)
    return Job("r", "r", "r", PLUGIN, params, LAKEHOUSE, None)


def test_tables_that_wait_are_estimated_and_others_are_not() -> None:
    store = MemoryStore([ORDERS, CUSTOMERS, GONE])
    store.table_event(CUSTOMERS, "table_snapshot_started")
    estimate_rows(_job(), store)
    assert store.estimates == {ORDERS: 10}


@pytest.mark.parametrize("fault", ["unreachable", "login"])
def test_a_source_that_does_not_answer_costs_the_estimates_only(fault: str) -> None:
    """Guards the run: the metrics of a page must not end it."""
    store = MemoryStore([ORDERS])
    estimate_rows(_job(fault), store)
    assert store.estimates == {}
