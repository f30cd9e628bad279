"""What becomes of a table whose target could not be read when a run began."""

from __future__ import annotations

import time

from replicators.connectors.errors import ReplicationError
from runners.engine.faults import fail_at_start
from runners.engine.store import MemoryStore, TableState
from tests.unit.engine.changes import SCHEMA


def test_a_target_that_was_busy_at_the_start_is_tried_again_and_a_lost_one_is_not() -> None:
    """Guards against a table that fails for ever because its catalog was locked for the seconds in which a run began."""
    store = MemoryStore([SCHEMA.id])
    fail_at_start(store, SCHEMA.id, ReplicationError("target:conflict", table=SCHEMA.id), 5.0)
    (row,) = store.tables()
    assert row.state is TableState.FAILING
    assert row.retry_at is not None and row.retry_at <= time.time() + 5.0
    fail_at_start(store, SCHEMA.id, ReplicationError("target:table-missing", table=SCHEMA.id), 5.0)
    (row,) = store.tables()
    assert row.retry_at is None
