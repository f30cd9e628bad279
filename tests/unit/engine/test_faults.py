"""What becomes of a failing table: which faults are tried again, and which stay until a fresh
copy."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from replicators.connectors.model.changes import first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.apply.merge import Merger
from runners.engine.apply.recovery import recover_tables
from runners.engine.changelog.backlog import Backlog
from runners.engine.errors import fail_again, fail_at_start, fail_table
from runners.engine.run import EngineRun
from runners.engine.store.protocol import (
    MemoryStore,
    SegmentRow,
    TableRow,
    TableState,
    has_log_after,
    needs_log,
)
from runners.engine.store.table_states import is_lasting
from runners.engine.verify.following import FollowedStore
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import change_file


def test_a_target_that_was_busy_at_the_start_is_tried_again_and_a_lost_one_is_not() -> None:
    """Guards against a table that fails for ever because its catalog was locked for the seconds in
    which a run began."""
    store = MemoryStore([SCHEMA.id])
    fail_at_start(store, SCHEMA.id, ReplicationError("target:conflict", table=SCHEMA.id), 5.0)
    (row,) = store.tables()
    assert row.state is TableState.FAILING
    assert row.retry_at is not None and row.retry_at <= time.time() + 5.0
    fail_at_start(store, SCHEMA.id, ReplicationError("target:table-missing", table=SCHEMA.id), 5.0)
    (row,) = store.tables()
    assert row.retry_at is None


def test_a_segment_that_is_recorded_meanwhile_is_not_taken_for_lost() -> None:
    """Guards the order in which `has_log_after` reads: a copy that a new run goes on with began
    again, and a table stopped with `log:table-pruned`, where the first segment was recorded between
    the two reads."""

    class Sealing(MemoryStore):
        """Records the first segment just after it listed none."""

        def segments(self) -> tuple[SegmentRow, ...]:
            found = super().segments()
            if not found:
                self.record_segment(SegmentRow(1, "", 1, 0, Position(1), True), Position(1))
            return tuple(found)

    assert has_log_after(Sealing([SCHEMA.id]), last_sequence(0))
    assert FollowedStore(Sealing([SCHEMA.id])).first_segment() == 1


def test_a_table_that_stopped_within_a_segment_needs_the_rest_of_it() -> None:
    """Guards `has_log_after` against a hole after "Retry now": a merge ends in the midst of a
    segment where a table's schema changes, and a stop there keeps no log. Asked of the segment
    instead of the sequence, the log would count as whole without that segment."""
    store = MemoryStore([SCHEMA.id])
    for number in (1, 2, 3):
        position = Position(number)
        store.record_segment(SegmentRow(number, "", 1, 0, position, True), position)
    within = first_sequence(2) + 4
    store.forget([1])
    assert has_log_after(store, within)
    store.forget([2])
    assert not has_log_after(store, within)
    assert has_log_after(store, last_sequence(2))
    store.forget([3])
    assert not has_log_after(store, first_sequence(3) + 4)
    assert has_log_after(store, last_sequence(3))


def test_what_a_failing_table_has_not_merged_counts_after_a_start_too() -> None:
    """Guards `recover_tables`: left out there, a table that fails would have lag 0 and no backlog
    from the next start on, and never come to its share of the log."""
    store = MemoryStore([SCHEMA.id])
    store.record_segment(SegmentRow(1, "", 1, 0, Position(1), True), Position(1))
    store.record_decoded([1], [change_file(1)])
    store.table_event(SCHEMA.id, "table_snapshot_done", is_snapshot_done=True)
    store.table_event(SCHEMA.id, "table_failed", error_code="target:evolve")
    nothing: Any = None
    backlog = Backlog(store.segments(), 1)
    merger = Merger(nothing, nothing, store, nothing, "r1", nothing, nothing)
    recover_tables(nothing, merger, store, backlog)
    assert (backlog.oldest(SCHEMA.id), backlog.size_bytes(SCHEMA.id)) == (1.0, 1)


def test_a_file_is_listed_no_longer_before_it_goes() -> None:
    """Guards the order in `_prune`: a rewind that reads a listed file which is gone has its segment
    decoded again, and a listed segment that is gone makes every table fail. What a kill leaves in
    the other order is swept at the next start."""
    store = MemoryStore([SCHEMA.id])
    store.record_segment(SegmentRow(1, "1.raw", 1, 0, Position(1), True), Position(1))
    store.record_decoded([1], [change_file(1)])
    store.table_event(SCHEMA.id, "table_snapshot_done", merged_sequence=last_sequence(1))
    unlinked: list[tuple[list[str], int]] = []
    log = SimpleNamespace(unlink=lambda paths: unlinked.append((paths, len(store.segments()))))
    run: Any = object.__new__(EngineRun)
    run._store, run._log, run._backlog = store, log, Backlog(store.segments(), 1)
    run._streaming = SimpleNamespace(capture=SimpleNamespace(is_waiting_for_space=False))
    run._log_seconds = 1.0
    run._prune()
    assert unlinked == [(["1.raw", "1.parquet"], 0)]


def failed(store: MemoryStore, *, began: float | None = None, patience: float = 60.0) -> TableRow:
    """The table after one more failure of a kind that is tried again."""
    (row,) = store.tables()
    fault = ReplicationError("target:conflict", table=SCHEMA.id)
    fail_again(store, row, fault, began=began, patience=patience)
    (row,) = store.tables()
    return row


def test_a_table_is_tried_again_until_its_retry_time_is_used_up() -> None:
    """Guards `fail_again`: a table that fails for ever was tried again for ever, whatever
    `retry_minutes` said."""
    store = MemoryStore([SCHEMA.id])
    store.table_event(SCHEMA.id, "table_snapshot_done", is_snapshot_done=True)
    tries = [failed(store) for _ in range(4)]
    assert [row.is_given_up for row in tries] == [False, False, False, True]  # 5 + 10 + 20 + 40 s
    assert all(row.retry_at is not None for row in tries[:3])
    given_up = tries[-1]
    assert given_up.retry_at is None
    assert needs_log(given_up), "its changes would be gone before somebody looked"
    assert [kind for _, kind, _ in store.reported] == ["table_given_up"]
    assert not is_lasting(given_up.error_code, None, is_given_up=True)


def test_only_time_that_was_spent_on_trying_counts() -> None:
    """Guards `tried_seconds`: a replicator that was paused over the weekend would give its table up
    at the first failure after it."""
    store = MemoryStore([SCHEMA.id])
    row = failed(store, began=time.time() - 15)
    assert 15 <= row.failing_seconds < 20
    store.table_progress(SCHEMA.id, retry_at=time.time() - 86_400)
    row = failed(store)
    assert (
        20 <= row.failing_seconds < 30
    )  # The first wait of 5 s is counted, the day that nobody tried is not.


def test_a_lasting_fault_of_a_table_that_was_given_up_needs_a_fresh_copy() -> None:
    """Guards the stores' `is_given_up`, which ends with any other failure: kept, it would offer a
    retry that brings nothing."""
    store = MemoryStore([SCHEMA.id])
    store.table_event(SCHEMA.id, "table_snapshot_done", is_snapshot_done=True)
    assert failed(store, patience=1.0).is_given_up
    fail_table(store, SCHEMA.id, "log:table-pruned", {})
    (row,) = store.tables()
    assert (row.error_code, row.is_given_up, needs_log(row)) == ("log:table-pruned", False, False)
