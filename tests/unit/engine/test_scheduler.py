"""What a table's jobs do about faults of its target (`runners.engine.scheduler`)."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from replicators.connectors.model.changes import OpCounts, last_sequence
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.target import TargetTable, Token
from runners.engine.apply.maintenance import FIRST_SECONDS, LAST_SECONDS, Upkeep
from runners.engine.apply.merge import Merger
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.frontier import Frontier
from runners.engine.pacing import Pacing
from runners.engine.scheduler import Scheduler
from runners.engine.schema.evolution import Evolver
from runners.engine.schema.watch import Look
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore, TableRow, TableState
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_consistent_snapshots import OTHER, Source, make, point
from tests.unit.engine.test_frontier import change_file, segment

TABLE = SCHEMA.id
MERGED = last_sequence(5)


class Target:
    """A target table's token, and what its upkeep does."""

    def __init__(self) -> None:
        self.sequence = MERGED
        self.asked = 0
        self.fault: Exception | None = None
        self.upkeeps = 0

    def token(self, table: TargetTable) -> Token:
        self.asked += 1
        return Token("r1", table.generation, self.sequence, "u")

    def maintain(self, table: TargetTable, keep_seconds: float) -> dict[str, Any]:
        self.upkeeps += 1
        if self.fault:
            raise self.fault
        return {}


class Jobs:
    """A table that replicates, without Spark: nothing of it waits to be merged."""

    def __init__(self) -> None:
        self.store = MemoryStore([TABLE])
        self.store.record_segment(segment(5, decoded=True), Position(500))
        self.store.table_event(TABLE, "table_snapshot_started", generation=1)
        self.store.table_event(
            TABLE, "table_snapshot_done", schema=SCHEMA, is_snapshot_done=True, table_uuid="u",
            token_sequence=MERGED, merged_sequence=MERGED,
        )  # fmt: skip
        self.target = Target()
        nothing = cast(Any, None)
        target = cast(Any, self.target)
        evolver = Evolver(target, self.store, SchemaPolicy.EVOLVE, nothing)
        self.jobs = Scheduler(
            store=self.store,
            merger=Merger(nothing, target, self.store, nothing, "r1", nothing, evolver),
            writer=target,
            backlog=Backlog(self.store.segments(), 5),
            watchdog=cast(Any, SimpleNamespace(step=lambda name: nullcontext())),
            settings=RunnerSettings(maintain_every_commits=1),
            replicator="r1",
            snapshots=nothing,
            decoding=nothing,
            streaming=cast(Any, SimpleNamespace(is_done=lambda *_: False, is_in_bulk=False)),
            evolver=evolver,
            rounds=cast(Any, SimpleNamespace(
                limit=lambda _: (Frontier(5, (5,)), False), changed=lambda _: None,
                arrive=lambda _: None, turn=lambda *_: None,
            )),
            rewinder=nothing,
        )  # fmt: skip

    def row(self) -> TableRow:
        return self.store.table(TABLE)

    def turn(self) -> None:
        """A look at the table, and the end of what it began."""
        self.jobs.turn()
        for future in list(self.jobs._busy.values()):
            future.result(30)


@pytest.mark.parametrize("is_behind", [True, False])
def test_a_table_that_has_nothing_to_merge_is_compared_before_it_counts_as_well_again(
    is_behind: bool,
) -> None:
    """Guards `Scheduler._merge`: a target that was restored to an older state, or could not be
    asked at the start, would count as recovered by a retry that merges nothing, and the next merge
    would write over the hole."""
    jobs = Jobs()
    jobs.target.sequence = last_sequence(3) if is_behind else MERGED
    jobs.store.table_event(
        TABLE, "table_failed", error_code="target:unreachable", retry_at=time.time() - 1
    )
    jobs.turn()
    assert jobs.target.asked == 1
    if is_behind:
        assert (jobs.row().state, jobs.row().error_code) == (
            TableState.FAILING,
            "target:table-behind",
        )
    else:
        assert jobs.row().state is TableState.REPLICATING


def test_only_a_table_with_work_and_without_a_job_has_something_to_start() -> None:
    """Guards `waits_for_jobs`: runs on the shared Spark would look at their tables all the time
    while a merge waits for a core, or too late after it."""
    jobs = Jobs()
    backlog, scheduler = jobs.jobs._backlog, jobs.jobs
    assert scheduler.waits_for_jobs(is_copying=False)
    assert not scheduler.waits_for_jobs(is_copying=True)
    backlog.decoded([], [change_file(5)])
    assert not scheduler.waits_for_jobs(is_copying=False)
    may_end = threading.Event()
    scheduler._start(jobs.row(), "merge", lambda _: may_end.wait(30) and None, scheduler._pool)
    backlog.stirred.clear()
    assert scheduler.waits_for_jobs(is_copying=False)
    assert scheduler.waits_for_jobs(is_copying=True)
    may_end.set()
    assert backlog.stirred.wait(30), "the end of a job is seen at once"


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_table_is_not_blamed_for_a_jvm_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    """Guards `Scheduler._with_spark`: each table would fail as one whose target is not
    reachable."""
    jobs = Jobs()

    def refused(_: TargetTable) -> Token:
        raise ReplicationError("target:unreachable", table=TABLE) from ConnectionRefusedError()

    monkeypatch.setattr(jobs.target, "token", refused)
    monkeypatch.setattr(jobs.jobs, "_is_spark_lost", lambda: is_lost)
    jobs.store.table_event(
        TABLE, "table_failed", error_code="target:row-missing", retry_at=time.time() - 1
    )
    if is_lost:
        with pytest.raises(ReplicationError, match="run:spark-lost"):
            jobs.turn()
        assert jobs.row().error_code == "target:row-missing"
    else:
        with pytest.raises(ReplicationError, match="target:unreachable"):
            jobs.turn()


@pytest.mark.parametrize("fault", [ReplicationError("target:not-writable", table=TABLE), OSError()])
def test_a_table_whose_files_can_not_be_tidied_up_goes_on(fault: Exception) -> None:
    """Guards `Scheduler._maintain`: failed and recovered again by each merge, such a table would
    merge once in minutes, for ever."""
    jobs = Jobs()
    jobs.target.fault = fault
    jobs.jobs._upkeep.merged(TABLE)
    for _ in range(5):
        jobs.turn()
    assert jobs.row().state is TableState.REPLICATING
    assert jobs.target.upkeeps == 1


def test_a_table_that_is_not_as_it_was_left_fails_by_its_upkeep_too() -> None:
    """Guards `maintenance.ends_more`: what stands in the way of merges is reported as soon as it is
    seen."""
    jobs = Jobs()
    jobs.target.fault = ReplicationError("target:table-replaced", table=TABLE)
    jobs.jobs._upkeep.merged(TABLE)
    jobs.turn()
    assert (jobs.row().state, jobs.row().error_code) == (
        TableState.FAILING,
        "target:table-replaced",
    )


def test_upkeep_waits_for_a_quiet_moment_but_not_for_ever_and_longer_after_each_fault() -> None:
    """Guards `Upkeep` (CORRECTNESS 32): without its end a busy table is never tidied up, without
    its growing waits a fault that stays takes the table's time."""
    now = 0.0
    upkeep = Upkeep(50, lambda: now)
    for _ in range(50):
        assert not upkeep.is_due(TABLE, has_work=False)
        upkeep.merged(TABLE)
    assert upkeep.is_due(TABLE, has_work=False) and not upkeep.is_due(TABLE, has_work=True)
    for _ in range(50):
        upkeep.merged(TABLE)
    assert upkeep.is_due(TABLE, has_work=True)
    waits = [upkeep.failed(TABLE) for _ in range(10)]
    assert waits[:3] == [FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert waits[-1] == LAST_SECONDS
    assert not upkeep.is_due(TABLE, has_work=True)
    now += LAST_SECONDS
    assert upkeep.is_due(TABLE, has_work=True)
    upkeep.done(TABLE)
    assert not upkeep.is_due(TABLE, has_work=False)


def test_a_table_that_is_chosen_again_while_it_is_removed_is_copied_in_a_view_of_its_own() -> None:
    """Guards the place of `forget` in `Scheduler._remove`: a view that another table opened in
    between may have the table, and the log since went with the removal, so its changes until the
    next view would be lost without a word."""
    jobs, source = Jobs(), Source(OTHER)
    snapshots, _ = make(source, None)
    rows = jobs.store._tables
    rows[TABLE] = replace(rows[TABLE], is_chosen=False, is_drop_asked=True)
    seen: list[int] = []

    def drop(table: TargetTable) -> None:
        rows[TABLE] = replace(rows[TABLE], is_chosen=True, is_drop_asked=False)
        source.schemas = [SCHEMA, OTHER]
        seen.append(point(snapshots, OTHER.id))

    jobs.jobs._writer = cast(Any, SimpleNamespace(drop=drop))
    jobs.jobs._snapshots = snapshots
    jobs.jobs._streaming = cast(Any, SimpleNamespace(withdraw=lambda *_: None))
    jobs.jobs._decoding = cast(Any, SimpleNamespace(drop=lambda _: None))
    jobs.jobs._remove(jobs.row())
    seen.append(point(snapshots, TABLE))
    assert seen[1] > seen[0]


def test_a_table_of_which_nothing_is_asked_is_not_looked_into_until_something_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `Scheduler._restless`: a turn over thousands of idle tables took a core; and none is
    forgotten."""
    jobs = Jobs()
    considered: list[TableRow] = []
    monkeypatch.setattr(jobs.jobs, "_consider", considered.append)
    jobs.jobs.turn()
    jobs.jobs.turn()
    assert considered == []
    jobs.jobs._upkeep.merged(TABLE)
    jobs.jobs.turn()
    assert considered == [jobs.row()]
    jobs.jobs._upkeep.done(TABLE)
    jobs.jobs._backlog.decoded([], [replace(change_file(6), table=TABLE)])
    jobs.jobs.turn()
    assert considered == [jobs.row()] * 2
    jobs.jobs._backlog.mark(TABLE, [], jobs.jobs._backlog.touched(TABLE))
    jobs.jobs.see(Look({TABLE: SCHEMA}, known={TABLE: jobs.row()}))
    jobs.jobs.turn()
    assert considered == [jobs.row()] * 3


@pytest.mark.parametrize(
    "asked",
    [
        {"is_resync_asked": True},
        {"rewind_to": 5.0},
        {"is_replay_asked": True},
        {"is_chosen": False},
        {"mode_asked": Mode.APPEND},
        {"state": TableState.FAILING},
    ],
    ids=str,
)
def test_a_table_of_which_something_is_asked_is_looked_into(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `is_quiet`: what it leaves out would never be done."""
    jobs = Jobs()
    jobs.turn()
    considered: list[TableRow] = []
    monkeypatch.setattr(jobs.jobs, "_consider", considered.append)
    jobs.store._tables[TABLE] = replace(jobs.row(), **asked)
    jobs.jobs.turn()
    assert considered == [jobs.row()]


@pytest.mark.parametrize("is_cut", [True, False])
def test_what_one_merge_could_not_take_is_merged_at_once(
    monkeypatch: pytest.MonkeyPatch, *, is_cut: bool
) -> None:
    """Guards `Scheduler._merge`: with an hour between two merges, a backlog of ten merges would
    take ten hours, and one schema change an hour."""
    jobs = Jobs()
    limit = Frontier(9, (5, 9))

    def merge(row: TableRow, files: object, upto: Frontier) -> bool:
        sequence = last_sequence(7) if is_cut else upto.sequence
        jobs.store.record_merged(row.id, sequence, sequence, OpCounts())
        return True

    applier = SimpleNamespace(
        pending=lambda *_: [change_file(7)], merge=merge, is_ahead=lambda _: False,
        unmerged=lambda _: [],
    )  # fmt: skip
    monkeypatch.setattr(jobs.jobs, "_merger", applier)
    monkeypatch.setattr(jobs.jobs._rounds, "limit", lambda _: (limit, False))
    monkeypatch.setattr(jobs.jobs, "_pacing", Pacing(jobs.jobs._backlog, 3600.0))
    jobs.jobs._merge(jobs.row())
    assert jobs.jobs._pacing.is_due(TABLE) is is_cut
