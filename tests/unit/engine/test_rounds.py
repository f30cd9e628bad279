"""Tables that merge each for themselves meet at one sequence, and only what is exactly there is
published (CORRECTNESS 31)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from replicators.connectors.model.changes import OpCounts, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TableVersion, TargetTable, Token
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.frontier import Frontier
from runners.engine.checkpoints.rounds import PATIENCE_SECONDS, Rounds, cut
from runners.engine.idle import OWN, Idle
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import (
    ChangeFileRow,
    MemoryStore,
    SegmentRow,
    TableRow,
)
from runners.engine.store.watermarks import Watermark
from tests.fakes.clock import FakeClock
from tests.unit.engine.test_frontier import change_file

TABLES = tuple(TableId("bank", name) for name in ("one", "two", "idle"))


class Target:
    """Each table's commits: (sequence, the segments whose files it holds), the version being their
    number."""

    history_seconds = 1800.0

    def __init__(self) -> None:
        self.commits: dict[TableId, list[tuple[int, frozenset[int]]]] = {
            t: [(0, frozenset())] for t in TABLES
        }
        self.is_down = False

    def version(self, table: TargetTable) -> TableVersion | None:
        if self.is_down:
            raise ReplicationError("target:unreachable")
        commits = self.commits[table.source]
        token = Token("r1", table.generation, commits[-1][0], "u")
        return TableVersion(token, str(len(commits) - 1))


class Bank:
    """A run without Spark: segments come, jobs begin and end in any order."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.store = MemoryStore(TABLES)
        for table in TABLES:
            self.store.table_event(table, "table_snapshot_done", is_snapshot_done=True)
        self.backlog = Backlog([], 0)
        self.target = Target()
        self.clock = FakeClock()
        self.files: dict[TableId, list[ChangeFileRow]] = {t: [] for t in TABLES}
        self.jobs: dict[TableId, tuple[list[ChangeFileRow], int] | None] = {}
        self.number = 0
        self.known: float | None = 10.0
        self.rounds = self.make()

    def make(self, idle: Idle = OWN) -> Rounds:
        return Rounds(
            store=self.store,
            writer=self.target,  # type: ignore[arg-type]
            backlog=self.backlog,
            settings=RunnerSettings(round_seconds=1.0),
            replicator="r1",
            has_pending=lambda row, end: bool(self.pending(row, end)),
            known_until=lambda: self.known,
            source_now=lambda: 5.0,
            clock=lambda: self.clock().timestamp(),
            idle=idle,
        )

    def pending(self, row: TableRow, end: Frontier) -> list[ChangeFileRow]:
        mine = self.files[row.id]
        return [
            f for f in mine if row.merged_sequence < f.last_sequence and f.segment <= end.segment
        ]

    def segment(self, *tables: TableId, closed: bool = True) -> None:
        """One more segment with a change of each of these tables."""
        self.number += 1
        row = SegmentRow(self.number, "", 1, 0, Position(self.number * 100), closed)
        self.backlog.sealed(row)
        files = [replace(change_file(self.number), table=t) for t in tables]
        for file in files:
            self.files[file.table].append(file)
        self.backlog.decoded([self.number], files)

    def begin(self, table: TableId) -> None:
        """A merge reads how far it may go."""
        reached, _ = self.rounds.limit(table)
        self.jobs[table] = (self.pending(self.store.table(table), reached), reached.sequence)

    def end(self, table: TableId) -> None:
        """It commits, records, and arrives; or it only reads the version."""
        job = self.jobs.pop(table)
        if job and job[0]:
            files, sequence = job
            commits = self.target.commits[table]
            commits.append((sequence, commits[-1][1] | {f.segment for f in files}))
            self.store.record_merged(table, sequence, sequence, OpCounts())
        row = self.store.table(table)
        touched = self.backlog.touched(table)
        self.backlog.mark(table, self.pending(row, Frontier(1 << 30, ())), touched)
        self.rounds.arrive(row)

    def turn(self) -> Watermark | None:
        return self.rounds.turn(
            self.store.tables(), self.jobs, lambda row: self.jobs.update({row.id: None})
        )

    def merge(self, *tables: TableId) -> None:
        for table in tables:
            self.begin(table)
            self.end(table)

    def upkeep(self, table: TableId) -> None:
        self.rounds.changed(table)
        self.target.commits[table].append(self.target.commits[table][-1])

    def step(self) -> None:
        act, table = self.random.random(), self.random.choice(TABLES[:2])
        self.clock.move(self.random.random() / 4)
        if act < 0.3:
            self.segment(*self.random.sample(TABLES, self.random.randint(0, 2)),
                         closed=self.random.random() < 0.8)  # fmt: skip
        elif act < 0.85:
            table = self.random.choice(TABLES)
            (self.end if table in self.jobs else self.begin)(table)
        elif table not in self.jobs:
            self.upkeep(table)
        self.turn()

    def assert_exact(self) -> None:
        for mark in self.store.watermarks:
            end = mark.sequence >> 32
            assert mark.position.ordinal == end * 100
            for table, version in mark.versions.items():
                held = self.target.commits[table][int(version)][1]
                assert held == {f.segment for f in self.files[table] if f.segment <= end}


@pytest.mark.parametrize("seed", range(4))
def test_every_published_version_holds_exactly_what_was_committed_up_to_the_watermark(
    seed: int,
) -> None:
    """Guards the cut of merges at a round's end (`Rounds.limit`): without it a merge that begins a
    moment later holds changes past the end. Guards the check in `arrive` too: without it a table
    whose earlier merge ended before the round's end is taken as it is."""
    bank = Bank(seed)
    for _ in range(1000):
        bank.step()
    assert len(bank.store.watermarks) > 15
    assert all(len(m.versions) == 3 for m in bank.store.watermarks)
    bank.assert_exact()


def test_a_table_goes_on_past_the_end_once_its_version_is_known() -> None:
    """Guards that a slow table does not hold the others: `limit` binds a table only until it has
    arrived."""
    bank = Bank()
    bank.clock.move(2)
    bank.segment(*TABLES)
    assert bank.turn() is None
    bank.segment(*TABLES)
    one, two, idle = TABLES
    assert bank.rounds.limit(one) == (Frontier(1, (1,)), True)
    bank.merge(one)
    assert bank.rounds.limit(one) == (Frontier(2, (1, 2)), False)
    bank.merge(one)
    assert bank.turn() is None
    bank.merge(two, idle)
    mark = bank.turn()
    assert mark is not None and mark.sequence == last_sequence(1) and not mark.left_out
    assert mark.versions[one] == "1" and len(bank.target.commits[one]) == 3
    bank.assert_exact()


def test_failing_and_slow_tables_are_left_out_and_named() -> None:
    """Guards the patience of a round, and that a table that missed one is not waited for until it
    has passed it: without either a stuck table keeps every watermark from being published."""
    bank = Bank()
    one, two, idle = TABLES
    bank.clock.move(2)
    bank.segment(one, two)
    bank.turn()
    bank.jobs[two] = None  # a merge that takes very long
    bank.merge(one)
    bank.store.table_event(idle, "table_failed", error_code="target:conflict")
    assert bank.turn() is None
    bank.clock.move(PATIENCE_SECONDS)
    mark = bank.turn()
    assert mark is not None and mark.left_out == {two: "behind", idle: "failing"}

    bank.segment(one)
    bank.merge(one)
    bank.clock.move(2)
    bank.turn()
    bank.end(one) if one in bank.jobs else bank.merge(one)
    after = bank.turn()
    assert after is not None and set(after.versions) == {one}, "it was waited for again"
    del bank.jobs[two]
    bank.merge(two)
    bank.segment(two)
    bank.clock.move(2)
    bank.turn()
    bank.merge(two)
    last = bank.turn()
    assert last is not None and set(last.versions) == {one, two}


def test_nothing_is_published_of_a_table_before_a_heartbeat_that_was_sent_after_its_copy() -> None:
    """Guards `copied`: a copy holds what was committed until it was read, which may be past a
    round's end; chunks that converge are no moment of the source at all before the log after them
    is merged."""
    bank = Bank()
    bank.known = 4.0
    bank.clock.move(2)
    bank.segment(*TABLES)
    assert bank.turn() is None and bank.rounds.limit(TABLES[0])[1] is False
    bank.known = 6.0
    bank.clock.move(2)
    bank.merge(*TABLES)
    bank.turn()
    bank.merge(*TABLES)
    assert bank.turn() is not None


def test_watermarks_with_the_same_versions_are_further_apart_where_many_runs_share_a_spark() -> (
    None
):
    """Guards an idle run from a round each five seconds, and one with changes from waiting longer
    than the setting for its round."""
    bank = Bank()
    bank.rounds = bank.make(Idle(round=10.0))

    def passed(seconds: float) -> Watermark | None:
        bank.clock.move(seconds)
        bank.segment()
        bank.known = (bank.known or 0.0) + seconds
        return bank.turn()

    bank.segment(*TABLES)
    assert passed(2) is None
    bank.merge(*TABLES)
    assert bank.turn() is not None
    assert passed(2) is None
    assert passed(9) is not None
    bank.segment(TABLES[0])
    assert passed(2) is None
    bank.merge(TABLES[0])
    assert bank.turn() is not None
    bank.assert_exact()


def test_a_version_that_is_not_our_last_merge_is_not_published() -> None:
    """Guards the comparison of the version's token with what we merged last, and that a catalog
    that is away for a moment leaves the table out and does not fail it."""
    bank = Bank()
    bank.clock.move(2)
    bank.segment(TABLES[0])
    bank.target.commits[TABLES[1]].append((first_sequence(9), frozenset()))
    bank.turn()
    bank.target.is_down = True
    bank.end(TABLES[2])
    bank.target.is_down = False
    bank.end(TABLES[1])
    bank.merge(TABLES[0])
    mark = bank.turn()
    assert mark is not None and set(mark.versions) == {TABLES[0]}


def test_cut_keeps_only_ends_before_it() -> None:
    """Guards `rounds.cut` (CORRECTNESS 31): a transaction's end beyond the round's segment would
    let a table merge past the sequence that the others stop at."""
    assert cut(Frontier(9, (5, 8, 9)), 8) == Frontier(8, (5, 8))
    assert cut(Frontier(7, (5, 7)), 8) == Frontier(7, (5, 7))


def test_a_table_whose_change_was_left_out_of_the_log_is_in_no_watermark_from_there() -> None:
    """Guards the tables as `_begin` asks for them: decoding fails a table just before the frontier
    moves past what it left out, and a turn that looked at the tables before that would take the
    idle table for level. Guards `arrive` too, for a merge that ends after the fault."""
    one, two, idle = TABLES
    bank = Bank()
    bank.clock.move(2)
    bank.segment()
    bank.turn()
    for table in TABLES:
        bank.end(table)
    assert bank.turn() is not None  # all versions are known
    rows = bank.store.tables()
    bank.store.table_event(two, "table_failed", error_code="source:value-unsupported")
    bank.store.table_progress(idle, is_resync_asked=True)
    bank.segment()
    bank.clock.move(2)
    mark = bank.rounds.turn(rows, bank.jobs, lambda row: None)
    assert mark is not None and set(mark.versions) == {one}

    bank.segment(one)
    bank.clock.move(2)
    assert bank.turn() is None
    bank.store.table_progress(one, is_resync_asked=True)
    bank.merge(one)
    assert bank.turn() is None and len(bank.store.watermarks) == 2


def test_a_table_that_is_removed_while_a_round_goes_on_is_not_named() -> None:
    """Guards `_publish`: its table may be dropped at the target by then, and `forget_versions`
    mends only what was published."""
    one, two, _ = TABLES
    bank = Bank()
    bank.clock.move(2)
    bank.segment(one, two)
    bank.turn()
    bank.merge(one, TABLES[2])
    bank.store.table_progress(one, is_chosen=False)
    bank.merge(two)
    mark = bank.turn()
    assert mark is not None and one not in mark.versions and one not in mark.left_out
