"""The promises of the engine's memory, for both of its forms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from replicators.connectors.model.changes import OpCounts, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Array, Decimal, Enum, Int, String, Timestamp
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.services import replicator_update
from runners.engine.store.copies import CopyChunk, CopyRow
from runners.engine.store.protocol import (
    ChangeFileRow,
    Desire,
    MemoryStore,
    SegmentRow,
    Store,
    TableMetrics,
    TableState,
)
from runners.models import Event, Progress, QuarantinedRow, Run, Table, TableMetric
from runners.services import (
    replicator_pause,
    table_remove,
    table_replay,
    table_resync,
    table_retry,
    table_rewind,
)
from runners.store.django import DjangoStore
from runners.tables.changes import table_add, table_change, table_mode
from tests.app.factories import make_run

ORDERS, CUSTOMERS = TableId("shop", "orders"), TableId("shop", "customers")
SCHEMA = TableSchema(
    ORDERS,
    (
        Column("id", Int(64), "bigint", False, 1),
        Column("price", Decimal(12, 2), "numeric(12,2)", True, 2),
        Column("tags", Array(String()), "text[]", True, 3, wire="x"),
        Column("kind", Enum(("a", "b")), "kind", True, 4),
        Column("at", Timestamp(6, True), "timestamptz", True, 5),
    ),
    ("id",),
    ("id",),
    7,
    True,
)


MINE: dict[str, Any] = {"schema": "shop", "name": "orders", "actor": None}
ACTIONS: dict[str, Callable[[Replicator], object]] = {
    "resync": lambda r: table_resync(replicator=r, **MINE),
    "rewind": lambda r: table_rewind(replicator=r, at=timezone.now(), **MINE),
    "remove": lambda r: table_remove(replicator=r, **MINE),
    "retry": lambda r: table_retry(replicator=r, **MINE),
    "replay": lambda r: table_replay(replicator=r, **MINE),
    "mode": lambda r: table_mode(is_assessed=False, replicator=r, mode="append", **MINE),
    "change": lambda r: table_change(
        is_assessed=False,
        replicator=r,
        selection=TableSelection(ORDERS, filter="id > 5"),
        actor=None,
    ),
    "add": lambda r: table_add(
        is_assessed=False,
        replicator=r,
        selection=TableSelection(TableId("shop", "fresh")),
        actor=None,
    ),
    "options": lambda r: replicator_update(
        replicator=r, actor=None, options={"mode": "soft_delete"}
    ),
}


@pytest.fixture(params=["memory", "django"])
def store(request: pytest.FixtureRequest) -> Store:
    """Both forms, with two tables."""
    if request.param == "memory":
        return MemoryStore([CUSTOMERS, ORDERS])
    run = make_run(request.getfixturevalue("replicator"))
    return DjangoStore(run.pk, run.lease)


def test_a_table_that_was_never_chosen_is_a_key_error(store: Store) -> None:
    """Guards `table`: both forms say the same of a table that they do not know."""
    with pytest.raises(KeyError):
        store.table(TableId("shop", "unknown"))


def test_tables_without_work_follow_the_log_together(store: Store) -> None:
    """Guards `record_skipped`: the log before them could not be pruned; none moves back."""
    store.record_merged(ORDERS, 9, 9, OpCounts(1, 0, 0))
    store.record_skipped([ORDERS, CUSTOMERS], 7)
    assert [t.merged_sequence for t in store.tables()] == [7, 9]
    assert [store.table(t).merged_sequence for t in (CUSTOMERS, ORDERS)] == [7, 9]
    assert store.table(ORDERS).token_sequence == 9


def segment(number: int, **changes: Any) -> SegmentRow:
    values = {
        "path": f"/log/{number}",
        "size_bytes": 10,
        "crc32": 2**32 - 1,
        "position": Position(number * 100, {"timeline": 1}),
        "is_closed": True,
        "messages": 3,
        "sealed_at": 1000.0 + number,
        **changes,
    }
    return SegmentRow(number, **values)


def file(number: int, table: TableId = ORDERS) -> ChangeFileRow:
    return ChangeFileRow(
        table=table,
        segment=number,
        path=f"/files/{table}/{number}",
        version="v1",
        schema=SCHEMA,
        counts=OpCounts(3, 2, 1),
        first_sequence=first_sequence(number),
        last_sequence=first_sequence(number) + 5,
        first_committed_at=1.5,
        last_committed_at=2.5,
        first_position=10,
        last_position=2**62,
        size_bytes=100,
        crc32=2**32 - 1,
        unsent=("tags",),
        has_key_changes=True,
    )


def record(store: Store, *numbers: int) -> None:
    for number in numbers:
        row = segment(number)
        store.record_segment(row, row.position)


def test_it_starts_empty_with_waiting_tables(store: Store) -> None:
    """Guards the beginning of both forms of the store: no position (so a slot is made), segment
    numbers from 1, a row for each chosen table."""
    memory = store.memory()
    assert memory.position is None
    assert memory.last_segment == 0
    assert [(t.id, t.state) for t in memory.tables] == [
        (CUSTOMERS, TableState.WAITING),
        (ORDERS, TableState.WAITING),
    ]
    assert store.desire() is Desire.RUN


def test_a_segment_and_its_position_are_recorded_together(store: Store) -> None:
    """Guards step 2 of the order of writes (CORRECTNESS 1 and 27): a segment without its position
    is captured twice, a position without its segment is a loss."""
    store.record_start(Position(50, {"system": "x"}))
    record(store, 1, 2)
    memory = store.memory()
    assert memory.position == Position(200)
    assert memory.position.detail == {"timeline": 1}
    assert memory.last_segment == 2
    assert store.segments() == [segment(1), segment(2)]


def test_a_log_that_begins_again_ends_the_segments_of_the_old_one(store: Store) -> None:
    """Guards positions of a log that was lost: left as they are, they would count as later than the
    new start."""
    record(store, 1, 2, 3)
    store.record_start(Position(150, {"system": "new"}))
    assert store.memory().position == Position(150)
    assert [s.position.ordinal for s in store.segments()] == [100, 150, 150]


def test_a_position_never_moves_back(store: Store) -> None:
    """Guards `_advance`: a late keepalive would set the captured position back, and whole
    transactions would come a second time."""
    store.record_start(Position(50))
    store.record_position(Position(70, {"a": 1}))
    store.record_position(Position(60))
    assert store.memory().position == Position(70)


def test_a_segment_number_is_never_used_twice(store: Store) -> None:
    """Guards CORRECTNESS 4 in `record_segment`: rows under a number that was used are below the
    merged sequence, and never merged."""
    record(store, 1, 2)
    store.discard_segments([2])
    assert [s.number for s in store.segments()] == [1]
    assert store.memory().last_segment == 2
    with pytest.raises(ValueError, match="used before"):
        record(store, 2)


def test_decoding_lists_files_and_marks_segments_and_can_be_repeated(store: Store) -> None:
    """Guards step 4 of the order of writes: `record_decoded` replaces a segment's files, since
    listed beside the old ones its rows would be merged twice."""
    record(store, 1, 2)
    store.record_decoded([1, 2], [file(1), file(2), file(2, CUSTOMERS)])
    store.record_decoded([2], [file(2)])
    assert all(s.is_decoded for s in store.segments())
    assert store.change_files(ORDERS, after=0, upto=last_sequence(2)) == [file(1), file(2)]
    assert store.change_files(CUSTOMERS, after=0, upto=last_sequence(2)) == []


def test_change_files_are_chosen_by_sequence(store: Store) -> None:
    """Guards the bounds of `change_files`: a file that is merged already would be folded again, one
    beyond `upto` too soon."""
    record(store, 1, 2, 3)
    store.record_decoded([1, 2, 3], [file(3), file(1), file(2)])
    found = store.change_files(ORDERS, after=first_sequence(1) + 5, upto=last_sequence(2))
    assert [f.segment for f in found] == [2]


def test_a_tables_states_and_fields_change_together(store: Store) -> None:
    """Guards `table_event`: a state without its fields, as a copy done without the sequence it
    stands at, would be merged from the wrong place after a crash."""
    row = store.table_event(ORDERS, "table_snapshot_started", generation=2)
    assert (row.state, row.generation) == (TableState.SNAPSHOTTING, 2)
    store.table_event(
        ORDERS, "table_snapshot_done", schema=SCHEMA, table_uuid="u", is_snapshot_done=True,
        merged_sequence=7, token_sequence=7, snapshot_position=9,
    )  # fmt: skip
    found = next(t for t in store.tables() if t.id == ORDERS)
    assert (found.state, found.schema, found.table_uuid) == (TableState.REPLICATING, SCHEMA, "u")
    assert (found.merged_sequence, found.snapshot_position) == (7, 9)
    assert next(t for t in store.tables() if t.id == CUSTOMERS).state is TableState.WAITING


def test_a_failure_carries_its_code_and_the_time_of_the_next_try(store: Store) -> None:
    """Guards what a restarted run knows of a failing table: without `retry_at` it would wait for a
    re-sync, and its recovery must clear all of it."""
    store.table_event(
        ORDERS, "table_failed", error_code="target:storage-full", error_facts={"table": "x"},
        retry_at=1234.5, failures=2,
    )  # fmt: skip
    row = next(t for t in store.tables() if t.id == ORDERS)
    assert (row.error_code, row.error_facts, row.retry_at, row.failures) == (
        "target:storage-full", {"table": "x"}, 1234.5, 2,
    )  # fmt: skip
    row = store.table_event(
        ORDERS, "table_recovered", error_code="", error_facts={}, retry_at=None, failures=0
    )
    assert (row.state, row.error_code, row.retry_at) == (TableState.REPLICATING, "", None)


def copied(store: Store) -> None:
    store.table_event(ORDERS, "table_snapshot_started")
    store.table_event(ORDERS, "table_snapshot_done", is_snapshot_done=True, generation=1)


def test_a_fault_that_only_a_fresh_copy_mends_outlives_the_jobs_that_began_before_it(
    store: Store,
) -> None:
    """Guards a hole that nobody sees: a merge that ends, well or with a passing fault, after
    decoding left changes out of the log. Fails where the door lets either in."""
    copied(store)
    store.table_event(ORDERS, "table_failed", error_code="source:value-unsupported")
    for event, changes in (
        ("table_recovered", {}),
        ("table_failed", {"error_code": "target:conflict", "retry_at": 1234.5}),
        ("table_failed", {"error_code": "target:column-missing"}),
    ):
        row = store.table_event(ORDERS, event, **changes)
        assert (row.state, row.error_code, row.retry_at) == (
            TableState.FAILING, "source:value-unsupported", None,
        )  # fmt: skip
    row = store.table_event(ORDERS, "table_rewound", generation=2, rewind_to=None)
    assert (row.state, row.error_code) == (TableState.FAILING, "source:value-unsupported")
    assert row.generation == 2, "a rewind that was published is not to be forgotten"
    row = store.table_event(ORDERS, "table_failed", error_code="log:segment-corrupt")
    assert row.error_code == "log:segment-corrupt"
    assert store.table_event(ORDERS, "table_waits").state is TableState.WAITING


def test_a_fault_that_passes_gives_way_to_one_that_stays(store: Store) -> None:
    """Guards `table_event` for a table that fails already: kept instead of the new one, a fault
    that passes would hide one that only a fresh copy mends, and the next try would go on without
    what is missing."""
    copied(store)
    store.table_event(ORDERS, "table_failed", error_code="target:conflict", retry_at=1234.5)
    row = store.table_event(
        ORDERS, "table_failed", error_code="source:value-unsupported", retry_at=None
    )
    assert (row.error_code, row.retry_at) == ("source:value-unsupported", None)


def test_merges_count_and_never_move_back(store: Store) -> None:
    """Guards the `max` in `record_merged`: set back, the table's merged changes would be folded
    again."""
    store.record_merged(ORDERS, 100, 100, OpCounts(5, 1, 1))
    store.record_merged(ORDERS, 90, None, OpCounts(1))
    row = next(t for t in store.tables() if t.id == ORDERS)
    assert (row.merged_sequence, row.token_sequence) == (100, 100)


def test_only_what_every_table_that_needs_the_log_has_merged_is_pruned(store: Store) -> None:
    """Guards `prunable` (CORRECTNESS 28): a segment that one table has yet to merge, or that is
    younger than the keep time, must stay."""
    record(store, 1, 2)
    store.record_decoded([1, 2], [file(1), file(2)])
    for table in (ORDERS, CUSTOMERS):
        store.table_event(table, "table_snapshot_started")
        store.table_event(table, "table_snapshot_done", is_snapshot_done=True)
    store.record_merged(ORDERS, last_sequence(2), None, OpCounts())
    assert store.prunable(older_than=5000.0) == ([], [])
    store.record_merged(CUSTOMERS, last_sequence(1), None, OpCounts())
    segments, files = store.prunable(older_than=5000.0)
    assert ([s.number for s in segments], [f.segment for f in files]) == ([1], [1])
    assert store.prunable(older_than=1000.5) == ([], [])
    store.forget([1])
    assert [s.number for s in store.segments()] == [2]
    assert store.change_files(ORDERS, after=0, upto=last_sequence(2)) == [file(2)]


def test_a_failing_table_keeps_the_log_only_while_it_is_tried_again(store: Store) -> None:
    """Guards `needs_log` (CORRECTNESS 28): a table that only a re-sync brings back would keep the
    log growing to its limit; what is not decoded stays, also where nobody needs it yet."""
    record(store, 1, 2)
    store.record_decoded([1], [])
    store.table_event(CUSTOMERS, "table_removed")
    store.table_event(ORDERS, "table_failed", retry_at=99.0, is_snapshot_done=True)
    assert store.prunable(older_than=5000.0) == ([], [])
    store.table_event(ORDERS, "table_failed", retry_at=None)
    assert [s.number for s in store.prunable(older_than=5000.0)[0]] == [1]


def test_a_table_that_waits_for_its_turn_in_an_open_view_keeps_the_log(store: Store) -> None:
    """The copy of the table before it may take longer than the keep time."""
    record(store, 1)
    store.record_decoded([1], [])
    store.table_event(ORDERS, "table_snapshot_started")
    store.table_event(ORDERS, "table_snapshot_done", is_snapshot_done=True)
    store.record_merged(ORDERS, last_sequence(1), None, OpCounts())
    assert store.prunable(older_than=5000.0) == ([], [])
    store.table_event(CUSTOMERS, "table_removed")
    assert [s.number for s in store.prunable(older_than=5000.0)[0]] == [1]


def test_a_tables_backlog_can_be_dropped_alone(store: Store) -> None:
    """Guards `drop_changes` (CORRECTNESS 28): the other tables' files, of the same segments, must
    stay listed."""
    record(store, 1)
    store.record_decoded([1], [file(1), file(1, CUSTOMERS)])
    assert store.drop_changes(ORDERS) == [file(1).path]
    assert store.change_files(ORDERS, after=0, upto=last_sequence(1)) == []
    assert len(store.change_files(CUSTOMERS, after=0, upto=last_sequence(1))) == 1


COPY = CopyRow(
    table=ORDERS,
    generation=3,
    schema=SCHEMA,
    layout='[["shop", "orders", 1234]]',
    position=2**40,
    segment=6,
    folder="/warehouse/orders/data/abc",
    chunks=(CopyChunk(0, "SELECT 1", 10), CopyChunk(1, "SELECT 2", 20), CopyChunk(2, "SELECT 3")),
)


def test_a_snapshot_that_goes_on_is_remembered_chunk_by_chunk(store: Store) -> None:
    """Guards the copy rows (CORRECTNESS 17): a chunk marked without being written leaves its rows
    out, one of an earlier generation brings back old ones."""
    assert store.copy(ORDERS) is None
    store.copy_begun(COPY)
    assert store.copy(ORDERS) == COPY
    assert store.copy(CUSTOMERS) is None
    one = replace(COPY.chunks[1], path="/f/1", rows=7, is_done=True)
    store.copy_done(ORDERS, [one])
    two = replace(COPY.chunks[0], path="/f/0", rows=9, is_done=True)
    store.copy_done(ORDERS, [two])
    found = store.copy(ORDERS)
    assert found is not None
    assert found.chunks == (two, one, COPY.chunks[2])
    store.copy_begun(replace(COPY, generation=4))
    assert store.copy(ORDERS) == replace(COPY, generation=4), "chunks of before are gone"
    store.copy_forget(ORDERS)
    store.copy_forget(ORDERS)
    assert store.copy(ORDERS) is None


WRITES = {
    "renew": lambda s: s.renew(time.time() + 10),
    "record_start": lambda s: s.record_start(Position(1)),
    "record_segment": lambda s: record(s, 1),
    "record_position": lambda s: s.record_position(Position(1)),
    "discard": lambda s: s.discard_segments([1]),
    "record_decoded": lambda s: s.record_decoded([], []),
    "table_event": lambda s: s.table_event(ORDERS, "table_failed"),
    "table_progress": lambda s: s.table_progress(ORDERS, failures=1),
    "snapshot_rows": lambda s: s.record_snapshot_rows(ORDERS, 1, 2),
    "estimates": lambda s: s.record_estimates({ORDERS: 1}),
    "copy_begun": lambda s: s.copy_begun(COPY),
    "copy_done": lambda s: s.copy_done(ORDERS, []),
    "copy_forget": lambda s: s.copy_forget(ORDERS),
    "record_merged": lambda s: s.record_merged(ORDERS, 1, 1, OpCounts()),
    "drop_changes": lambda s: s.drop_changes(ORDERS),
    "forget": lambda s: s.forget([1]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_write_of_a_run_that_lost_its_lease_is_refused(store: Store, write: Any) -> None:
    """Guards `DjangoStore._write` (CORRECTNESS 29), call by call: one write without the proof would
    let a replaced run change what its successor relies on."""
    if isinstance(store, MemoryStore):
        store.lost = True
    else:
        Run.objects.update(lease="somebody-else")
    with pytest.raises(ReplicationError) as caught:
        write(store)
    assert caught.value.code == "run:lease-lost"
    assert store.memory().last_segment == 0


class TestDjangoOnly:
    """What people and pages see of it."""

    @pytest.fixture
    def run(self, replicator: Replicator) -> Run:
        return make_run(replicator)

    def test_an_ended_run_writes_no_more(self, run: Run) -> None:
        """Guards the look at the run's state in `DjangoStore._write`: a run that was declared lost
        still has its lease's token."""
        store = DjangoStore(run.pk, run.lease)
        Run.objects.update(state="lost")
        with pytest.raises(ReplicationError):
            store.record_position(Position(1))
        assert store.desire() is Desire.STOP

    def test_a_pause_and_a_resync_are_seen(self, run: Run) -> None:
        """Guards `desire` and `tables`: actions of people reach a run only through these."""
        store = DjangoStore(run.pk, run.lease, tables_seconds=0)
        table_resync(replicator=run.replicator, schema="shop", name="orders", actor=None)
        assert [t.id for t in store.tables() if t.is_resync_asked] == [ORDERS]
        replicator_pause(replicator=run.replicator, actor=None)
        assert store.desire() is Desire.STOP

    def test_an_event_row_goes_with_every_change_of_state(self, run: Run) -> None:
        """Guards `table_transition` behind `table_event`: a state that changed without a row would
        be a failure that nobody was told."""
        store = DjangoStore(run.pk, run.lease)
        store.table_event(ORDERS, "table_failed", error_code="target:table-missing")
        event = Event.objects.get(kind="table_failed")
        assert (event.run, event.table_name, event.code) == (run, "orders", "target:table-missing")

    def test_metrics_become_rows_at_two_resolutions(self, run: Run) -> None:
        """Guards `record_metrics`: the charts' rows are one a span of time, not one a beat; the
        beats may fall into two spans."""
        store = DjangoStore(run.pk, run.lease)
        store.record_merged(ORDERS, 5, 5, OpCounts(4, 3, 2))
        store.record_metrics({ORDERS: TableMetrics(2.5, 1000.0, 77)}, {"log_bytes": 5})
        store.record_metrics({ORDERS: TableMetrics(2.5, 1000.0, 77)}, {"log_bytes": 6})
        assert TableMetric.objects.filter(table__name="orders").count() in (2, 3, 4)
        metric = TableMetric.objects.filter(table__name="orders", resolution_seconds=60).first()
        assert metric is not None
        assert (metric.lag_seconds, metric.inserts, metric.backlog_bytes) == (2.5, 4, 77)
        assert Progress.objects.get().facts == {"log_bytes": 6}
        assert Table.objects.get(name="orders").updates == 3

    def test_what_the_source_keeps_a_run_waiting_for_stays_beside_the_metrics(
        self, run: Run
    ) -> None:
        """Guards `waits`: a run that starts writes no metrics yet, and one that runs writes them
        over it each second. One event for each who is waited for."""
        store = DjangoStore(run.pk, run.lease)
        store.waits("process 1, open for 2 s", is_new=True)
        store.waits("process 1, open for 3 s", is_new=False)
        store.record_metrics({}, {"log_bytes": 5})
        facts = Progress.objects.get().facts
        assert (facts["waits"], facts["log_bytes"]) == ("process 1, open for 3 s", 5)
        (event,) = Event.objects.filter(kind="source_waits")
        assert (event.facts, event.run) == ({"holder": "process 1, open for 2 s"}, run)

    def test_one_table_is_one_query_and_as_it_is_now(
        self, run: Run, django_assert_num_queries: Any
    ) -> None:
        """Guards `DjangoStore.table`: a merge that loaded every table to look at one was slow with
        thousands of them."""
        store = DjangoStore(run.pk, run.lease)
        assert [store.table(t.id) for t in store.tables()] == store.tables()
        with django_assert_num_queries(1):
            assert store.table(ORDERS).state is TableState.WAITING
        table_resync(replicator=run.replicator, schema="shop", name="orders", actor=None)
        assert store.table(ORDERS).is_resync_asked
        assert not store.table(CUSTOMERS).is_resync_asked

    def test_a_turn_of_an_idle_run_is_one_query(
        self, run: Run, django_assert_num_queries: Any
    ) -> None:
        """Guards `KnownTables.told`: `desire` brings the version of the tables, so `tables` asks
        nothing. Fifty idle runs would spend a core on such queries."""
        store = DjangoStore(run.pk, run.lease, tables_seconds=30)
        known = store.tables()
        with django_assert_num_queries(1):
            assert store.desire() is Desire.RUN
            assert store.tables() == known
        table_resync(replicator=run.replicator, schema="shop", name="orders", actor=None)
        assert store.tables() == known
        assert store.desire() is Desire.RUN
        assert [t.id for t in store.tables() if t.is_resync_asked] == [ORDERS]

    def test_what_the_run_writes_is_read_again_and_nothing_else(
        self, run: Run, django_assert_num_queries: Any
    ) -> None:
        """Guards `KnownTables.changed`: each merge of one table had the rows of thousands read
        again."""
        store = DjangoStore(run.pk, run.lease)
        customers, orders = store.tables()
        store.record_position(Position(7))
        with django_assert_num_queries(0):
            assert store.tables()[0] is customers
        store.record_merged(ORDERS, 5, 5, OpCounts(1, 0, 0))
        with django_assert_num_queries(1):
            read = store.tables()
        assert (read[0] is customers, read[1].merged_sequence) == (True, 5)
        assert orders.merged_sequence == 0

    @pytest.mark.parametrize("act", ACTIONS)
    def test_what_people_ask_of_tables_is_seen_by_a_run_that_keeps_them_in_mind(
        self, run: Run, act: str, keeps_versions: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Guards `Replicator.tables_version`: an action that does not make it grow would not reach
        the run for a minute."""
        monkeypatch.setattr("runners.tables.rewinding._reach_seconds", lambda *_: 1800.0)
        monkeypatch.setattr("runners.services.can_rewind", lambda _: True)
        store = DjangoStore(run.pk, run.lease, tables_seconds=0)
        mine = Table.objects.filter(name="orders")
        state = "failing" if act == "retry" else "replicating"
        mine.update(state=state, schema=SCHEMA.to_json(), is_snapshot_done=True)
        mine.update(error_code="target:unreachable", is_given_up=act == "retry")
        QuarantinedRow.objects.create(table=mine.get(), generation=0, sequence=0, key="", image=b"")
        store._tables.forget()
        before = store.tables()
        ACTIONS[act](run.replicator)
        assert store.tables() != before

    def test_a_choice_that_is_made_while_the_run_writes_is_seen_whole(self, run: Run) -> None:
        """Guards `KnownTables._read_changed`: a row that is read alone may be newer than the choice
        that is kept in mind; its table would be copied whole."""
        store = DjangoStore(run.pk, run.lease)
        table_remove(replicator=run.replicator, schema="shop", name="orders", actor=None)
        assert len(store.tables()) == 2
        store.table_event(ORDERS, "table_removed")
        selection = TableSelection(ORDERS, columns=("id",))
        table_add(is_assessed=False, replicator=run.replicator, selection=selection, actor=None)
        row = next(t for t in store.tables() if t.id == ORDERS)
        assert (row.is_chosen, row.columns) == (True, ("id",))

    def test_the_same_metrics_of_many_tables_are_one_statement(
        self, run: Run, django_assert_max_num_queries: Any
    ) -> None:
        """Guards `record_metrics`: of thousands of idle tables it wrote one row after the other,
        every five seconds."""
        store, names = DjangoStore(run.pk, run.lease), [f"t{n}" for n in range(50)]
        for name in names:
            selection = TableSelection(TableId("shop", name))
            table_add(is_assessed=False, replicator=run.replicator, selection=selection, actor=None)
        store._tables.forget()
        metrics = {t.id: TableMetrics(0.5, 1000.0) for t in store.tables()}
        store.record_metrics(metrics, {})
        metrics = {table: TableMetrics(0.0, 1005.0) for table in metrics}
        with django_assert_max_num_queries(12):
            store.record_metrics(metrics, {})
        assert set(Table.objects.values_list("lag_seconds", flat=True)) == {0.0}

    def test_a_tables_rows_are_few_queries(self, run: Run, django_assert_num_queries: Any) -> None:
        """Guards the half second that `DjangoStore.tables` remembers: asked anew by every step, the
        database would do little else."""
        store = DjangoStore(run.pk, run.lease)
        store.tables()
        with django_assert_num_queries(0):
            store.tables()

    def test_a_database_that_does_not_answer_is_reported_as_such_and_never_taken_for_the_source(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Guards rules 1 and 27: taken for a cut of the source's connection, a segment that was
        recorded all the same would be passed over by every merge."""

        def lost(*args: object, **kwargs: object) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        store = DjangoStore(run.pk, run.lease)
        monkeypatch.setattr(transaction, "atomic", lost)
        for act in (lambda: store.record_position(Position(9)), lambda: store.renew(5.0)):
            with pytest.raises(ReplicationError) as caught:
                act()
            assert caught.value.code == "run:database-lost"


ATOMIC = transaction.atomic


class Outage:
    """In place of `atomic`: a database that goes away so many times, before anything is done or
    (`at_commit`) when all is."""

    def __init__(self, left: int, *, at_commit: bool = False) -> None:
        self.left = left
        self._at_commit = at_commit

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if not self._at_commit:
            self._fail()
        with ATOMIC():
            yield
        self._fail()

    def _fail(self) -> None:
        if self.left:
            self.left -= 1
            raise OperationalError("server closed the connection unexpectedly")


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_for_a_moment_is_waited_for(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards that a short outage ends no run: without the wait its first write would. The lease
    alone is not waited for: its watchdog counts the time."""
    monkeypatch.setattr("runners.store.outages.WAIT_SECONDS", 0.01)
    run = make_run(replicator)
    outage = Outage(3)
    store = DjangoStore(run.pk, run.lease, patience_seconds=60)
    monkeypatch.setattr(transaction, "atomic", outage)
    store.record_position(Position(9))
    assert outage.left == 0 and store.memory().position == Position(9)
    outage.left = 1
    with pytest.raises(ReplicationError) as caught:
        store.renew(5.0)
    assert caught.value.code == "run:database-lost"


@pytest.mark.django_db(transaction=True)
def test_what_may_have_been_committed_is_not_written_again(
    replicator: Replicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards rule 27: a segment's row that was made though nobody heard of it must not be made
    twice, or taken for one of another run; the next run reads what is there."""
    run = make_run(replicator)
    outage = Outage(1, at_commit=True)
    store = DjangoStore(run.pk, run.lease, patience_seconds=60)
    monkeypatch.setattr(transaction, "atomic", outage)
    with pytest.raises(ReplicationError) as caught:
        store.record_position(Position(9))
    assert caught.value.code == "run:database-lost" and outage.left == 0
