"""Comparing source and target of a run, on local tasks: the in-memory source, and the tests' own
target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from replicators.connectors import registry
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.model.types import LogicalType, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import Fit, FitKind, TargetPlugin
from replicators.sources.memory.database import database, delete, insert, update
from replicators.sources.memory.rows import MemoryRows
from runners.engine import run
from runners.engine.job import Job
from runners.engine.store.protocol import MemoryStore, TableRow, TableState
from runners.engine.store.quarantine import QuarantinedRow
from runners.engine.tasks.local import LocalTasks
from runners.engine.verify import pairs, reading
from runners.engine.verify.comparable import scope
from runners.engine.verify.following import FollowedStore
from runners.engine.verify.report import (
    Kind,
    Options,
    Outcome,
    Report,
    Step,
    TableProgress,
    TableReport,
)
from runners.engine.verify.run import verify
from runners.engine.verify.throttle import Throttle
from tests.local import duck
from tests.local.polled import KEYED, NOTES, VIEWS, PolledWorld, Running, note, view
from tests.local.tables import LocalTable
from tests.local.target import PLUGIN
from tests.local.verified import Heard


class VerifiedWorld(PolledWorld):
    """A world whose copies are compared."""

    is_running = True
    source: SourcePlugin[Any] = registry.sources()["memory"]

    def job(self) -> Job:
        return replace(super().job(), source=self.source)

    def verify(self, heard: Heard | None = None, **options: Any) -> Report:
        return verify(
            self.job(),
            FollowedStore(self.store, lambda: self.is_running),
            LocalTasks(folder=str(self.folder / "files")),
            self.settings,
            Options(**{"wait_seconds": 20.0, **options}),
            heard or Heard(),
        )

    def damage(self, table: TableId, change: Callable[[pa.Table], pa.Table]) -> None:
        """Change the copy as another tool would."""
        copy = LocalTable(self.folder / "target" / table.schema / table.name)
        copy.commit(change(copy.rows()))


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[VerifiedWorld]:
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    made = VerifiedWorld(tmp_path, request.node.name)
    yield made
    database.cache_clear()


@pytest.fixture
def running(world: VerifiedWorld) -> Iterator[Running]:
    made = world.start()
    made.until(lambda: world.is_replicating() and world.is_level())
    yield made
    made.stop()


def of(report: Report, table: TableId) -> TableReport:
    (found,) = [t for t in report.tables if t.table == table]
    return found


def with_value(rows: pa.Table, column: str, at: int, value: Any) -> pa.Table:
    values = rows.column(column).to_pylist()
    values[at] = value
    place = rows.schema.get_field_index(column)
    return rows.set_column(
        place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type)
    )


def test_a_copy_without_damage_has_no_difference(world: VerifiedWorld, running: Running) -> None:
    heard = Heard()
    report = world.verify(heard)
    assert report.outcome is Outcome.EQUAL and report.is_running
    assert [(t.table, t.rows_source, t.rows_target) for t in report.tables] == [
        (NOTES, 20, 20),
        (VIEWS, 9, 9),
    ]
    assert heard.done == list(report.tables)
    assert not list((world.folder / "files").iterdir())


def _repair_reader(params: Any, name: str, after: Position | None) -> MemoryRows:
    """Reads rows under the verification's own name, from the captured position."""
    assert name.endswith("_v") and after is not None
    return MemoryRows(params)


@pytest.mark.parametrize("how", ["by key", "by key and position", "by search"])
def test_each_kind_of_damage_is_named(
    world: VerifiedWorld, running: Running, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Rows are read again by their keys, or by a search through both sides: where the source reads
    no rows by key, and where there are many."""
    if how == "by search":
        monkeypatch.setattr(reading, "KEYS_MOST", 0)
        world.source = replace(world.source, row_reader=None)
    if how == "by key and position":
        monkeypatch.setattr("runners.engine.verify.table.ScanLookup", None)
        world.source = replace(world.source, row_reader=None, repair_reader=_repair_reader)

    def damage(rows: pa.Table) -> pa.Table:
        ids = rows.column("id").to_pylist()
        rows = with_value(rows, "note", ids.index(3), "")
        rows = with_value(rows, "note", ids.index(4), None)
        rows = with_value(rows, "id", ids.index(9), 900)
        return pa.concat_tables([rows, rows.slice(ids.index(5), 1)])

    world.damage(NOTES, damage)
    found = of(world.verify(), NOTES)
    assert found.outcome is Outcome.DIFFERENT
    assert (found.missing, found.extra, found.different) == (1, 2, 2)
    by_key = {d.key["id"]: d for d in found.differences}
    assert {k: d.kind for k, d in by_key.items()} == {
        3: Kind.DIFFERENT, 4: Kind.DIFFERENT, 5: Kind.EXTRA, 9: Kind.MISSING, 900: Kind.EXTRA,
    }  # fmt: skip
    assert by_key[3].columns == ("note",) and by_key[4].columns == ("note",)
    assert by_key[3].source == {"id": 3, "note": "as it was"}
    assert by_key[3].target == {"id": 3, "note": ""} and by_key[4].target == {"id": 4, "note": None}
    assert by_key[5].copies == (1, 2)
    assert by_key[9].target is None and by_key[900].source is None


def test_rows_without_a_key_count(world: VerifiedWorld, running: Running) -> None:
    def damage(rows: pa.Table) -> pa.Table:
        (first, *_) = [i for i, n in enumerate(rows.column("n").to_pylist()) if n == 1]
        keep = [i for i in range(rows.num_rows) if i != first]
        added = with_value(rows.slice(0, 1), "n", 0, 77)
        return pa.concat_tables([rows.take(keep), added, added])

    world.damage(VIEWS, damage)
    found = of(world.verify(), VIEWS)
    assert found.outcome is Outcome.DIFFERENT
    assert {(d.key["n"], d.kind, d.copies) for d in found.differences} == {
        (1, Kind.MISSING, (3, 2)),
        (77, Kind.EXTRA, (0, 2)),
    }


def test_traffic_is_no_difference_and_damage_is_found_under_it(
    world: VerifiedWorld, running: Running
) -> None:
    """Guards `settle`: rows that change while they are compared are waited for."""
    with traffic(world):
        for _ in range(2):
            report = world.verify()
            assert [(t.wrong, t.code) for t in report.tables] == [(0, ""), (0, "")]
    running.until(world.is_level)
    world.damage(NOTES, lambda rows: _set(rows, 15, "damaged"))
    with traffic(world, 5000):
        found = of(world.verify(), NOTES)
    assert [d.key["id"] for d in found.differences] == [15]


@contextmanager
def traffic(world: VerifiedWorld, first: int = 1000) -> Iterator[None]:
    """Meanwhile, rows come, and two rows change again and again, back to what they were too."""
    stop = threading.Event()

    def write() -> None:
        texts = ["as it was", "a", "b"]
        turn = 0
        while not stop.wait(0.01) or turn % 3:
            for key in (1, 2):
                was, now = texts[turn % 3], texts[(turn + 1) % 3]
                world.database.commit(update(NOTES, note(key, was), note(key, now)))
            number = first + turn
            world.database.commit(insert(VIEWS, view(number)), insert(NOTES, note(number)))
            turn += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def _set(rows: pa.Table, key: int, text: str) -> pa.Table:
    return with_value(rows, "note", rows.column("id").to_pylist().index(key), text)


def test_a_paused_replicator_is_compared_as_far_as_it_came(world: VerifiedWorld) -> None:
    """Rows that differ may be changes that are not delivered yet, so none counts as wrong."""
    made = world.start()
    made.until(lambda: world.is_replicating() and world.is_level())
    made.stop()
    world.is_running = False
    report = world.verify()
    assert report.outcome is Outcome.EQUAL and not report.is_running
    world.damage(NOTES, lambda rows: _set(rows, 15, "damaged"))
    found = of(world.verify(), NOTES)
    assert [d.key["id"] for d in found.differences] == [15]  # everything was delivered
    world.database.commit(update(NOTES, note(2), note(2, "new")))
    found = of(world.verify(), NOTES)
    assert (found.outcome, found.code, found.wrong) == (Outcome.UNSETTLED, "verify:paused", 0)
    assert [d.key["id"] for d in found.undecided] == [2, 15]


def test_a_target_that_does_not_follow_is_reported(world: VerifiedWorld) -> None:
    made = world.start()
    made.until(lambda: world.is_replicating() and world.is_level())
    made.stop()
    world.database.commit(insert(NOTES, note(50)))
    report = world.verify(wait_seconds=0.5, tables=(NOTES,))
    assert [(t.table, t.outcome, t.code) for t in report.tables] == [
        (NOTES, Outcome.FAILED, "verify:behind")
    ]


def test_a_stop_ends_between_chunks(world: VerifiedWorld, running: Running) -> None:
    report = world.verify(Heard(stop_at=3))
    assert [t.outcome for t in report.tables] == [Outcome.STOPPED, Outcome.STOPPED]
    assert report.outcome is Outcome.STOPPED
    assert not list((world.folder / "files").iterdir())


def test_a_table_that_fails_or_is_copied_again_is_reported(
    world: VerifiedWorld, running: Running
) -> None:
    """Guards that rows of two generations are never compared."""

    def copied_again(now: TableProgress) -> None:
        if now.table == NOTES and now.step is Step.READ:
            row = world.store.table(NOTES)
            world.store._tables[NOTES] = replace(row, generation=row.generation + 1)

    heard = Heard(act=copied_again)
    world.damage(NOTES, lambda rows: _set(rows, 15, "damaged"))
    kept = world.store.table(NOTES)
    found = of(world.verify(heard), NOTES)
    assert (found.outcome, found.code) == (Outcome.FAILED, "verify:changed")
    world.store._tables[NOTES] = replace(kept, state=TableState.FAILING, error_code="target:x")
    found = of(world.verify(), NOTES)
    world.store._tables[NOTES] = kept
    assert (found.outcome, found.code) == (Outcome.NOT_COMPARED, "verify:failing")
    assert found.facts == {"reason": "target:x"}


def test_a_target_table_that_is_gone_fails(world: VerifiedWorld, running: Running) -> None:
    world.damage(NOTES, lambda rows: rows)

    def away(now: TableProgress) -> None:
        (world.folder / "target" / "shop" / "notes" / "live.json").unlink(missing_ok=True)

    state = (world.folder / "target" / "shop" / "notes" / "live.json").read_text()
    report = world.verify(Heard(act=away))
    (world.folder / "target" / "shop" / "notes" / "live.json").write_text(state)
    assert of(report, NOTES).code == "target:table-missing"
    assert of(report, VIEWS).outcome is Outcome.EQUAL


def test_rows_in_quarantine_are_not_compared(world: VerifiedWorld, running: Running) -> None:
    def drop(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.greater(rows.column("id"), 2))

    world.damage(NOTES, drop)
    row = world.store.table(NOTES)
    image = pairs.to_ipc(pa.table({"id": pa.array([1], pa.int64()), "note": ["as it was"]}))
    held = [QuarantinedRow(1, "id=1", "too long", image)]
    world.store.record_quarantined(NOTES, row.generation, held)
    found = of(world.verify(), NOTES)
    assert ([d.key["id"] for d in found.differences], found.quarantined) == ([2], 1)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mode": Mode.APPEND, "mode_asked": Mode.APPEND}, "verify:append"),
        ({"excluded": ("updates",)}, "verify:excluded"),
        ({"mode_asked": Mode.HISTORY}, "verify:outdated"),
        ({"is_snapshot_done": False}, "verify:not-copied"),
    ],
)
def test_what_cannot_be_compared_says_why(changes: dict[str, Any], code: str) -> None:
    row = TableRow(NOTES, TableState.REPLICATING, 1, KEYED, is_snapshot_done=True)
    with pytest.raises(ReplicationError) as err:
        scope(replace(row, **changes), PLUGIN)
    assert err.value.code == code and err.value.message.text


def test_kinds_that_people_chose_are_no_fault(world: VerifiedWorld, running: Running) -> None:
    row = world.store.table(NOTES)
    world.store._tables[NOTES] = replace(row, excluded=("deletes",))
    world.damage(NOTES, lambda rows: pa.concat_tables([rows, _set(rows.slice(0, 1), 1, "1")]))
    world.damage(NOTES, lambda rows: with_value(rows, "id", rows.num_rows - 1, 901))
    found = of(world.verify(), NOTES)
    assert (found.outcome, found.extra) == (Outcome.EQUAL, 0)
    assert "Deletes are left out" in found.notes[0]


def test_columns_that_the_target_changes_are_left_out() -> None:
    row = TableRow(NOTES, TableState.REPLICATING, 1, KEYED, is_snapshot_done=True)

    def fit(kind: LogicalType) -> Fit:
        is_text = isinstance(kind, String)
        return Fit(FitKind.LOSSY if is_text else FitKind.EXACT, "text", "it is cut")

    found = scope(row, replace(PLUGIN, fit=fit))
    assert found.columns == ("id",)
    assert [(c.column, c.reason) for c in found.left_out] == [
        ("note", "The target holds its values in another form: it is cut.")
    ]


def test_the_throttle_keeps_the_rate() -> None:
    clock = Clock()
    throttle = Throttle(100, 0, lambda: False, timer=lambda: clock.now, sleep=clock.sleep)
    for _ in range(10):
        throttle.pause(500, 10_000)
    assert 45 <= clock.now <= 50
    assert throttle.rows_a_chunk(250_000) == 500
    stopped = Throttle(1, 0, lambda: clock.now > 100, timer=lambda: clock.now, sleep=clock.sleep)
    stopped.pause(1_000_000, 0)
    assert clock.now < 102
    assert not Throttle(0, 0, lambda: False).is_on


class Clock:
    """Time that passes by sleeping."""

    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class DuckWorld(VerifiedWorld):
    """The copies are tables of DuckDB."""

    def target(self) -> tuple[TargetPlugin[Any], Any]:
        return duck.PLUGIN, duck.DuckParams(str(self.folder / "d.db"), str(self.folder / "duck"))


@pytest.mark.parametrize("mode", [Mode.SOFT_DELETE, Mode.HISTORY])
def test_only_current_rows_of_a_mode_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """Guards that a deleted row which is kept, and a closed version, are no extra rows."""
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    world = DuckWorld(tmp_path, f"verified-{mode}")
    world.store = MemoryStore([NOTES])
    world.store._tables[NOTES] = TableRow(NOTES, mode_asked=mode)
    client = duck.DuckClient(str(tmp_path / "d.db"))
    with duckdb.connect(client.path):  # so that each call opens it at once
        running = world.start()
        running.until(world.is_replicating)
        world.database.commit(update(NOTES, note(2), note(2, "new")), delete(NOTES, note(3)))
        found = of(world.verify(), NOTES)
        assert (found.outcome, found.rows_source, found.rows_target) == (Outcome.EQUAL, 19, 19)
        assert len(client.records(duck.names(NOTES))) == (20 if mode is Mode.SOFT_DELETE else 21)
        current = "NOT _is_deleted" if mode is Mode.SOFT_DELETE else "_is_current"
        with client.opened() as db:
            db.execute(f"UPDATE shop.notes SET note = '' WHERE id IN (2, 3) AND {current}")  # noqa: S608
        found = of(world.verify(), NOTES)
        running.stop()
    assert [(d.key["id"], d.kind, d.columns) for d in found.differences] == [
        (2, Kind.DIFFERENT, ("note",))
    ]
    database.cache_clear()
