"""Which view a table may be copied in, and how long one is waited for (CORRECTNESS 16, 18)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import OpenTransaction, SnapshotPoint, SnapshotWait
from runners.engine.changelog.backlog import Backlog
from runners.engine.snapshot.waiting import ConsistentSnapshots, PatientWait, StopAsked
from runners.engine.store.protocol import MemoryStore
from tests.unit.engine.changes import SCHEMA

OTHER = replace(SCHEMA, id=TableId("s", "other"))


class Session:
    """A view of the source."""

    def __init__(self, number: int) -> None:
        self.point = SnapshotPoint(str(number), Position(number))
        self.is_open = True

    def is_alive(self) -> bool:
        return self.is_open

    def close(self) -> None:
        self.is_open = False


class Source:
    """Publishes what is in `schemas` and opens snapshots by number."""

    def __init__(self, *schemas: TableSchema) -> None:
        self.schemas = list(schemas)
        self.actions: list[str] = []
        self.sessions = [Session(0)]

    def publish(self) -> Sequence[TableSchema]:
        self.actions.append("publish")
        return list(self.schemas)

    def open(self, wait: SnapshotWait) -> Any:
        self.actions.append("open")
        wait(0.0, [])
        self.sessions.append(Session(len(self.sessions)))
        return self.sessions[-1]


def make(
    source: Source,
    first: Sequence[TableSchema] | None,
    stop: bool = False,
    columns: ColumnKnowledge = ColumnKnowledge.BY_CATALOG,
) -> tuple[ConsistentSnapshots, Session]:
    snapshots = ConsistentSnapshots(
        backlog=Backlog([], 0),
        publish=source.publish,
        describe=lambda: list(source.schemas),
        open_snapshot=source.open,
        snapshotter=lambda session, table: session,  # type: ignore[arg-type, return-value]
        wait=lambda: PatientWait(60, lambda: stop),
        columns=columns,
        first=(source.sessions[0], first, {}) if first is not None else None,  # type: ignore[arg-type]
    )
    return snapshots, source.sessions[0]


def point(snapshots: ConsistentSnapshots, table: TableId) -> int:
    view = snapshots.snapshot(table)
    assert view is not None
    return view.position


def test_a_table_that_came_after_the_view_gets_one_that_begins_after_it_was_published() -> None:
    """Guards CORRECTNESS 18 in `ConsistentSnapshots.snapshot`: copied in a view from before it was
    published, a table would lack what was committed in between."""
    source = Source(SCHEMA, OTHER)
    snapshots, first = make(source, [SCHEMA])
    assert point(snapshots, SCHEMA.id) == 0
    assert point(snapshots, OTHER.id) == 1
    assert source.actions == ["publish", "open"]
    assert not first.is_open


def test_a_schema_that_changed_while_the_snapshot_was_opened_is_not_the_snapshots() -> None:
    """Guards the values of a column that a transaction added and filled, which was open when the
    table was described and is in the view: no change of the log tells them. Fails where the schemas
    are not asked for again."""
    source = Source(SCHEMA, OTHER)
    added = Column("late", Int(32), "integer", True, 9)
    wider = replace(SCHEMA, columns=(*SCHEMA.columns, added), upto=9)
    opened = source.open

    def open_late(wait: SnapshotWait) -> Any:
        if len(source.sessions) == 1:
            source.schemas[0] = wider
        return opened(wait)

    source.open = open_late  # type: ignore[method-assign]
    snapshots, _ = make(source, None)
    other, view = snapshots.snapshot(OTHER.id), snapshots.snapshot(SCHEMA.id)
    assert view is not None and view.schema.column("late") == added
    assert other is not None and (other.position, view.position) == (1, 2)
    assert source.actions == ["publish", "open"] * 2


def test_a_schema_that_changes_all_the_time_is_reported_in_the_end() -> None:
    """Guards the bound `OPENINGS` of `ConsistentSnapshots._open`: a table that is altered again and
    again would hold all others' copies up for ever."""
    source = Source(SCHEMA)
    snapshots, _ = make(source, None)
    snapshots._describe = lambda: [replace(SCHEMA, storage="other")]
    with pytest.raises(ReplicationError) as caught:
        snapshots.snapshot(SCHEMA.id)
    assert (caught.value.code, caught.value.table) == ("source:table-altered", SCHEMA.id)


def test_one_view_serves_all_its_tables_once() -> None:
    """Guards `ConsistentSnapshots.snapshot` for a table that is copied twice: its second copy, a
    re-sync, in the old view would bring back the rows of then."""
    source = Source(SCHEMA, OTHER)
    snapshots, _ = make(source, None)
    assert [point(snapshots, t) for t in (SCHEMA.id, OTHER.id, SCHEMA.id)] == [1, 1, 2]


def test_a_view_that_no_table_needs_is_closed() -> None:
    """Fails where the source goes on holding old rows for nobody."""
    source = Source(SCHEMA, OTHER)
    snapshots, first = make(source, [SCHEMA])
    snapshots.release()
    assert not first.is_open
    assert point(snapshots, SCHEMA.id) == 1


def test_a_table_that_left_the_stream_is_not_copied_in_a_view_from_before() -> None:
    """Its changes between the removal and the next publication are in no stream."""
    source = Source(SCHEMA, OTHER)
    snapshots, _ = make(source, [SCHEMA, OTHER])
    snapshots.forget(OTHER.id)
    assert point(snapshots, SCHEMA.id) == 0
    assert point(snapshots, OTHER.id) == 1


def test_a_table_that_leaves_does_not_wait_for_a_view_that_is_being_opened() -> None:
    """Guards `ConsistentSnapshots.forget`: it is called by jobs that share the threads of all
    merges, and a view may wait for minutes."""
    source = Source(SCHEMA, OTHER)
    snapshots, _ = make(source, None)
    opening, done = threading.Event(), threading.Event()
    plain = source.open

    def slow(wait: SnapshotWait) -> Any:
        opening.set()
        assert done.wait(30)
        return plain(wait)

    snapshots._open_snapshot = slow
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(point, snapshots, SCHEMA.id)
        assert opening.wait(30)
        snapshots.forget(OTHER.id)
        done.set()
        assert first.result(30) == 1
    assert point(snapshots, OTHER.id) == 2


def test_a_table_that_the_source_has_not_is_named() -> None:
    """Guards `source:table-missing` in `ConsistentSnapshots.snapshot`: a table that was dropped
    before its copy fails alone, with its name."""
    snapshots, _ = make(Source(SCHEMA), None)
    with pytest.raises(ReplicationError) as caught:
        snapshots.snapshot(OTHER.id)
    assert (caught.value.code, caught.value.table) == ("source:table-missing", OTHER.id)


def test_a_stop_ends_the_wait_without_a_fault() -> None:
    """Guards how `ConsistentSnapshots.snapshot` takes `StopAsked`: as a fault it would count
    against the table that happened to wait."""
    snapshots, _ = make(Source(SCHEMA), None, stop=True)
    assert snapshots.snapshot(SCHEMA.id) is None


def test_a_wait_tells_who_is_waited_for_now_and_then_and_gives_up_at_its_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Guards `PatientWait`: without its limit a forgotten transaction at the source holds a copy up
    for ever; without the names nobody finds it (CORRECTNESS 18)."""
    wait = PatientWait(60, lambda: False)
    holders = [OpenTransaction(41, 90.0, 12.0), OpenTransaction(0, 7.0, name="moved-money")]
    with caplog.at_level(logging.WARNING, "replicator.snapshot"):
        for second in range(60):
            wait(float(second), holders)
    reported = [r.getMessage() for r in caplog.records]
    assert len(reported) == 2
    assert "process 41, open for 90 s, its query began 12 s ago" in reported[0]
    assert "prepared transaction 'moved-money', open for 7 s" in reported[0]
    with pytest.raises(ReplicationError) as caught:
        wait(60.0, holders)
    assert caught.value.code == "source:snapshot-waits"
    assert "process 41" in caught.value.message.text


def test_who_keeps_a_run_waiting_is_reported_in_events_and_status() -> None:
    """Guards `PatientWait`: tables that wait would say no more than that; the log alone is read by
    nobody who looks at the page."""
    store = MemoryStore([SCHEMA.id])
    wait = PatientWait(60, lambda: False, store)
    lock = OpenTransaction(41, 9.0, None, "", "psql", "a lock (Share) on shop.items")
    wait(1.0, [lock])
    assert not store.waited
    for second in (3.0, 4.0):
        wait(second, [lock])
    wait(5.0, [OpenTransaction(0, 7.0, name="moved-money")])
    reported = (
        "The stream waits for a lock of the source's tables: process 41 (psql) with a lock "
        "(Share) on shop.items, open for 9 s"
    )
    prepared = (
        "A consistent snapshot waits for a transaction of the source: prepared transaction "
        "'moved-money', open for 7 s"
    )
    assert store.waited == [(reported, True), (reported, False), (prepared, True)]
    with pytest.raises(ReplicationError) as caught:
        wait(60.0, [lock])
    assert caught.value.code == "source:lock-waits"
    assert "process 41 (psql)" in caught.value.message.text


def test_a_stop_is_heard_while_waiting() -> None:
    """Guards `PatientWait` at a stop: a run that is paused would wait for the source's open
    transactions until it is killed."""
    with pytest.raises(StopAsked):
        PatientWait(60, lambda: True)(1.0, [])


class OwnViews(Session):
    """A session that is copied while rows change, but reads single tables at a point of their
    own."""

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Any]:
        return []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def point_of(self, table: TableSchema, *, is_exact: bool) -> SnapshotPoint:
        return SnapshotPoint("", Position(777)) if is_exact else self.point


def test_a_copy_that_must_be_exact_belongs_to_its_own_views_point() -> None:
    """Guards CORRECTNESS 19 for modes that keep every change: the session's point may be older than
    what is read."""
    source = Source(SCHEMA, OTHER)
    source.sessions = [OwnViews(5)]
    snapshots, _ = make(source, [SCHEMA, OTHER])
    exact, other = snapshots.snapshot(SCHEMA.id, is_exact=True), snapshots.snapshot(OTHER.id)
    assert exact is not None and other is not None
    assert (exact.position, other.position) == (777, 5)


def test_a_copy_counts_columns_that_the_source_does_not() -> None:
    """Guards renames from a source whose columns have no numbers: the copy knows its own from the
    start, and up to where the log is in it."""
    bare = tuple(replace(c, ordinal=0) for c in SCHEMA.columns)
    source = Source(replace(SCHEMA, columns=bare, upto=1), OTHER)
    source.sessions = [Session(n) for n in range(7)]
    snapshots, _ = make(source, None, columns=ColumnKnowledge.BY_STATEMENTS)
    view = snapshots.snapshot(SCHEMA.id)
    assert view is not None
    assert [c.ordinal for c in view.schema.columns] == list(range(1, len(bare) + 1))
    assert view.schema.upto == view.position == 7
    assert view.schema.copy_numbers
    plain, _ = make(Source(SCHEMA, OTHER), None)
    other = plain.snapshot(OTHER.id)
    assert other is not None
    assert other.schema == OTHER


class Placed(Session):
    """A session that tells where rows lie; `asked`: how often."""

    asked = 0

    def __enter__(self) -> Placed:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Any]:
        return []

    def keyed_chunk(self, table: TableSchema, number: int, keys: Any) -> Any:
        raise NotImplementedError

    def layout(self, table: TableSchema) -> str:
        self.asked += 1
        if table.id == OTHER.id:
            raise ReplicationError("source:table-missing", table=table.id)
        return f"place {self.asked}"


def test_where_rows_lie_is_asked_when_the_view_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `view.places`: asked when a table's turn comes, which may be hours later, a rewrite in
    between would not be seen."""
    monkeypatch.setattr("tests.unit.engine.test_consistent_snapshots.Session", Placed)
    source = Source(OTHER, SCHEMA)
    snapshots, _ = make(source, None)
    view = snapshots.snapshot(SCHEMA.id)
    assert view is not None and view.place == "place 2"
    other = snapshots.snapshot(OTHER.id)
    assert other is not None and other.place is None
    assert source.sessions[-1].asked == 2  # type: ignore[attr-defined]
