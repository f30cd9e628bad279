"""A sink's tables that start without a first copy: every change from the start of the log, and
nothing from before it, also where the run dies at the start. Without a JVM."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId
from replicators.connectors.model.types import Int
from replicators.connectors.target import TargetPlugin, TargetTable
from replicators.sources.memory.database import Transaction, insert, update
from runners.engine import failpoints, run
from runners.engine.job import Job, JobOptions
from runners.engine.store.protocol import TableState, needs_log
from runners.engine.tasks.local import LocalTasks
from tests.local.polled import KEYED, NOTES, PolledWorld, change_all, note
from tests.local.target import LocalParams, fit
from tests.sinks import FolderSink


class Killed(BaseException):
    """In place of SIGKILL."""


@dataclass(frozen=True)
class _NoChecks:
    def connection(self) -> list[Any]:
        return []


class SinkWorld(PolledWorld):
    """The database, copied into a folder that takes every change."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.sink = FolderSink(folder / "sink", LocalTasks())
        self.everything: list[Transaction] = []

    def target(self) -> tuple[TargetPlugin, Any]:
        plugin = TargetPlugin(
            name="folder",
            label="Folder",
            summary="For tests.",
            params=LocalParams,
            capabilities=TargetCapabilities(Delivery.EXACTLY_ONCE, modes=(Mode.APPEND,)),
            fit=fit,
            checks=lambda _: _NoChecks(),  # type: ignore[arg-type, return-value]
            writer=lambda _, tasks: self.sink,
        )
        return plugin, LocalParams(str(self.folder / "sink"))

    def job(self) -> Job:
        return replace(super().job(), options=JobOptions(copies_first=False))

    def delivered(self, table: TableId, generation: int | None = None) -> list[dict[str, Any]]:
        """Every row of the newest generation, in order."""
        row = self.store.table(table)
        place = TargetTable(table, "r1", generation or row.generation, mode=Mode.APPEND)
        return self.sink.rows(place)

    def is_level(self, start: int) -> bool:
        """Whether as many rows are delivered as were committed; a file may be half written."""
        try:
            return all(
                len(self.delivered(r.id)) == len(self.committed(r.id, start))
                for r in self.store.tables()
            )
        except (pa.ArrowInvalid, FileNotFoundError):
            return False

    def committed(self, table: TableId, after: int) -> list[tuple[int, int]]:
        """The changes that the database committed after a position: operation and transaction."""
        return [
            (int(change.op), transaction.number)
            for transaction in self.everything
            if transaction.number > after
            for change in transaction.changes
            if change.table == table
        ]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> SinkWorld:
    monkeypatch.setattr(run, "opened_for", lambda *_, **__: nullcontext())
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    made = SinkWorld(tmp_path, request.node.name)
    commit = made.database.commit

    def remembered(*changes: Any) -> int:
        end = commit(*changes)
        made.everything.append(made.database._transactions[-1])
        return end

    monkeypatch.setattr(made.database, "commit", remembered)
    return made


def assert_exact(world: SinkWorld, start: int) -> None:
    for row in world.store.tables():
        got = [(r["_op"], r["_transaction"]) for r in world.delivered(row.id)]
        assert got == world.committed(row.id, start)


def kill_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The first time that the run comes by this place, it ends."""
    real, hits = failpoints.hit, []

    def hit(at: str) -> None:
        if at == name and not hits:
            hits.append(at)
            raise Killed(name)
        real(at)

    assert name in failpoints.NAMES
    monkeypatch.setattr(failpoints, "hit", hit)


def test_only_changes_after_the_start_are_delivered(world: SinkWorld) -> None:
    """Guards `_begin_without_copy`: no row of before, every change since, and nothing twice. A run
    that goes on later still takes what was committed in between."""
    running = world.start()
    running.until(world.is_replicating)
    start = world.store.tables()[0].snapshot_position
    assert start == 3 and all(r.starts_after is None for r in world.store.tables())
    change_all(world.database, 1)
    running.until(lambda: world.is_level(start))
    running.stop()
    change_all(world.database, 2)
    running = world.start()
    running.until(lambda: world.is_level(start))
    running.stop()
    assert_exact(world, start)


@pytest.mark.parametrize("place", ["starts_recorded", "snapshot_begun", "snapshot_recorded"])
def test_a_kill_at_the_start_loses_nothing_after_it(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Guards the order: the tables' places are recorded before the log's. Once the log has begun,
    what is committed while nothing runs is delivered, although no snapshot shows where it began."""
    kill_at(monkeypatch, place)
    running = world.start()
    assert isinstance(running.ended(), Killed)
    begun = world.store.memory().position
    assert (begun is None) == (place == "starts_recorded")
    change_all(world.database, 1)
    running = world.start()
    running.until(world.is_replicating)
    start = world.store.tables()[0].snapshot_position
    assert begun is None or start == begun.ordinal
    change_all(world.database, 2)
    running.until(lambda: world.is_level(start))
    running.stop()
    assert_exact(world, start)


def test_columns_that_change_before_the_table_begins_are_followed(
    world: SinkWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the schema that is recorded with the place: changes are read with the columns of their
    time."""
    kill_at(monkeypatch, "snapshot_begun")
    assert isinstance(world.start().ended(), Killed)
    start = world.store.table(NOTES).snapshot_position
    world.database.commit(insert(NOTES, note(500)))
    more = replace(KEYED, columns=(*KEYED.columns, Column("size", Int(64), "bigint", ordinal=3)))
    world.database.create(more)
    world.database.commit(insert(NOTES, {**note(501), "size": 7}))
    world.database.commit(update(NOTES, note(500), {**note(500), "size": 8}))
    running = world.start()
    running.until(lambda: world.is_level(start))
    running.stop()
    rows = world.delivered(NOTES)
    assert [(r["_op"], r["id"], r.get("size")) for r in rows] == [
        (int(Op.INSERT), 500, None),
        (int(Op.INSERT), 501, 7),
        (int(Op.UPDATE), 500, 8),
    ]


def test_a_resync_copies(world: SinkWorld) -> None:
    """Guards FRESH: who asks for a fresh copy gets one."""
    running = world.start()
    running.until(world.is_replicating)
    world.store.table_progress(NOTES, is_resync_asked=True)
    running.until(lambda: world.store.table(NOTES).generation == 2 and world.is_replicating())
    running.stop()
    reads = [r for r in world.delivered(NOTES) if r["_op"] == int(Op.READ)]
    assert len(reads) == 20


def test_a_table_that_could_not_begin_keeps_its_log(world: SinkWorld) -> None:
    """Guards `needs_log`: a target that is away at the start may take a day, and the log from the
    start on is all that the table will get."""
    row = world.store.table(NOTES)
    failing = replace(row, state=TableState.FAILING, retry_at=1.0, schema=KEYED)
    assert not needs_log(failing)
    assert needs_log(replace(failing, starts_after=0))
    assert needs_log(replace(failing, starts_after=0, retry_at=None, is_given_up=True))


def test_a_target_with_tables_is_copied_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `skips_copy`: without its rows, updates and deletes would find nothing to change."""
    monkeypatch.setattr(run, "opened_for", lambda *_, **__: nullcontext())
    monkeypatch.setattr(run, "SparkTasks", lambda _, folder: LocalTasks(folder=folder))
    world = PolledWorld(tmp_path, "tables-all-the-same")
    job = replace(world.job(), options=JobOptions(copies_first=False))
    monkeypatch.setattr(world, "job", lambda: job)
    assert not job.skips_copy
    running = world.start()
    running.until(lambda: world.is_level() and world.is_replicating())
    running.stop()
