"""The steps of a group of tables that merge in one commit (CORRECTNESS 35)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from replicators.connectors.model.changes import OpCounts, first_sequence, last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.connectors.together import ReadyMerge
from runners.engine.apply.merge import Folded, Merger, next_batch
from runners.engine.apply.refill import Filler
from runners.engine.apply.together import Together
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.frontier import Frontier
from runners.engine.errors import fail_again
from runners.engine.fold.plan import FoldPlan
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, TableRow, TableState
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import change_file, segment

PARENTS, CHILDREN, IDLE = (TableId("shop", name) for name in ("parents", "children", "idle"))


class Target:
    """Takes batches, or fails as it is told. `commits`: the sequence of each table in each one."""

    def __init__(self) -> None:
        self.commits: list[dict[str, int]] = []
        self.tried = 0
        self.faults: list[ReplicationError] = []
        self.loads: dict[TableId, ReplicationError] = {}

    def ready(self, table: TargetTable, batch: FoldedBatch) -> ReadyMerge | None:
        if table.source in self.loads:
            raise self.loads[table.source]
        return ReadyMerge(table, batch, ())

    def merge_together(self, merges: Sequence[ReadyMerge]) -> None:
        self.tried += 1
        if self.faults:
            raise self.faults.pop(0)
        self.commits.append({m.table.source.name: m.batch.sequence for m in merges})


class Folds(Merger):
    """The engine's merger, whose batches are empty. `limit`: rows of one merge."""

    def __init__(self, store: MemoryStore, target: Target) -> None:
        nothing = cast(Any, None)
        filler = Filler(nothing, None)
        super().__init__(nothing, nothing, store, nothing, "r1", filler, nothing)
        self.forgotten: list[TableId] = []
        self.limit, self.target = 1000, target
        self.by_itself: list[tuple[str, int]] = []

    def recover(self, row: TableRow) -> None:
        pass

    def needed_no_source(self, row: TableRow) -> None:
        super().needed_no_source(row)
        self.forgotten.append(row.id)

    def batch_end(self, files: Sequence[ChangeFileRow], reached: Frontier) -> int:
        return next_batch(files, reached, self.limit)[1]

    def folded(
        self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier
    ) -> Folded | None:
        taken, sequence = next_batch(files, reached, self.limit)
        plan = FoldPlan(SCHEMA, tuple(taken), row.merged_sequence, 0, sequence, "")
        batch = FoldedBatch(SCHEMA, (), sequence, plan.rows)
        return Folded(row, plan, batch, OpCounts(inserts=plan.rows))

    def merge(self, row: TableRow, files: Sequence[ChangeFileRow], reached: Frontier) -> bool:
        done = self.folded(row, files, reached)
        assert done is not None
        self.by_itself.append((row.id.name, done.plan.sequence))
        self.record(done)
        return True


class World:
    """Three tables that replicate, merged up to segment 4."""

    def __init__(self) -> None:
        self.store, self.target = MemoryStore([PARENTS, CHILDREN, IDLE]), Target()
        for table in (PARENTS, CHILDREN, IDLE):
            self.at(table, 4)
        self.merger = Folds(self.store, self.target)
        self.made: Together | None = None

    def at(self, table: TableId, number: int) -> None:
        """The table replicates, and is merged up to that segment."""
        sequence = last_sequence(number)
        self.store._tables[table] = TableRow(
            table, TableState.REPLICATING, 1, SCHEMA, is_snapshot_done=True,
            merged_sequence=sequence, token_sequence=sequence,
        )  # fmt: skip

    def log(self, number: int, *tables: TableId, closed: bool = True, version: str = "v1") -> None:
        """A decoded segment with ten rows of each table."""
        row = segment(number, closed=closed, decoded=True)
        files = [replace(change_file(number, version=version), table=t) for t in tables]
        self.store.record_segment(row, Position(number * 100), files)

    def together(self) -> Together:
        """The group, as a run begins it."""
        backlog = Backlog(self.store.segments(), self.store.memory().last_segment)
        for row in self.store.tables():
            backlog.mark(row.id, self.merger.unmerged(row), 0)
        self.made = Together(
            merger=self.merger, writer=self.target, store=self.store, backlog=backlog,
            replicator="r1", guard=self.guard, extend=lambda _: None, threads=2,
        )  # fmt: skip
        return self.made

    def guard(self, row: TableRow, step: str, job: Callable[[TableRow], None]) -> bool:
        """As the scheduler's."""
        try:
            job(row)
        except ReplicationError as err:
            fail_again(self.store, self.store.table(row.id), err, began=None, patience=1e9)
            return False
        return True

    def merged(self) -> dict[str, int]:
        return {r.id.name: r.merged_sequence >> 32 for r in self.store.tables()}

    def failing(self) -> dict[str, str]:
        rows = self.store.tables()
        return {r.id.name: r.error_code for r in rows if r.state is TableState.FAILING}

    def step(self, together: Together) -> Any:
        return together.merge([r for r in self.store.tables() if together.has_place(r)])


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    if made.made is not None:
        made.made.close()


def test_all_tables_go_to_one_end_of_a_transaction_in_one_commit(world: World) -> None:
    """Guards `Together.merge`: the end is one that each table's limit allows, and no segment within
    a transaction."""
    world.log(5, PARENTS)
    world.log(6, PARENTS, CHILDREN, closed=False)
    world.log(7, CHILDREN)
    world.log(8, PARENTS, CHILDREN)
    world.log(9, CHILDREN, closed=False)
    world.merger.limit = 15
    together = world.together()
    assert world.step(together).is_cut
    assert world.target.commits == [dict.fromkeys(("parents", "children"), last_sequence(7))]
    assert not world.step(together).is_cut
    assert world.target.commits[1:] == [dict.fromkeys(("parents", "children"), last_sequence(8))]
    assert world.merged() == {"parents": 8, "children": 8, "idle": 4}
    assert together.limit().segment == 8
    assert world.merger.by_itself == []


def test_a_table_without_changes_moves_with_the_others_when_its_place_is_due(world: World) -> None:
    """Guards `Together.skips`: the log before the group's end is pruned, and an idle table is never
    recorded past it."""
    world.log(5, PARENTS)
    world.log(6, CHILDREN, closed=False)
    together = world.together()
    together.skips = True
    world.step(together)
    assert world.merged() == {"parents": 5, "children": 5, "idle": 5}


def test_the_table_whose_fault_it_is_fails_and_the_others_merge(world: World) -> None:
    """Guards the rule that one bad table does not stop the others, in the transaction and while a
    batch is loaded."""
    world.log(5, PARENTS, CHILDREN)
    world.target.faults = [ReplicationError("target:column-missing", table=CHILDREN)]
    together = world.together()
    step = world.step(together)
    assert world.target.commits == [{"parents": last_sequence(5)}]
    assert world.failing() == {"children": "target:column-missing"}
    assert [p.row.id for p in step.parts] == [PARENTS, IDLE]
    assert not together.is_waiting

    world.at(CHILDREN, 4)
    world.log(6, PARENTS, CHILDREN)
    world.target.loads = {CHILDREN: ReplicationError("target:column-missing", table=CHILDREN)}
    world.step(world.together())
    assert world.target.commits[1:] == [{"parents": last_sequence(6)}]
    assert world.failing() == {"children": "target:column-missing"}


def test_a_fault_that_passes_is_tried_once_more_at_once(world: World) -> None:
    """Guards the second try: a deadlock or a connection that was cut is no reason to leave a table
    out."""
    world.log(5, PARENTS, CHILDREN)
    world.target.faults = [ReplicationError("target:conflict", table=CHILDREN)]
    world.step(world.together())
    assert world.target.commits == [dict.fromkeys(("parents", "children"), last_sequence(5))]
    assert world.failing() == {}


def test_where_no_table_can_merge_all_of_them_wait_and_go_on_together(world: World) -> None:
    """Guards `Together.is_waiting`: after an outage of the target a table that was idle must not go
    ahead of those that failed."""
    world.log(5, PARENTS, CHILDREN)
    lost = ReplicationError("target:conflict")
    world.target.faults = [lost, lost]
    together = world.together()
    world.step(together)
    assert world.target.tried == 2 and world.target.commits == []
    assert set(world.failing()) == {"parents", "children"} and together.is_waiting
    assert not any(together.has_place(world.store.table(t)) for t in (PARENTS, CHILDREN))
    for table in (PARENTS, CHILDREN):
        world.store.table_progress(table, retry_at=time.time() - 0.1)
    assert [r.id for r in world.store.tables() if together.has_work(r)] == [PARENTS, CHILDREN]
    world.step(together)
    assert world.target.commits == [dict.fromkeys(("parents", "children"), last_sequence(5))]


def test_a_table_that_is_behind_joins_when_one_batch_brings_it_to_the_end(world: World) -> None:
    """Guards joining: a copy, a re-sync or a failure leaves a table behind. Far behind it merges by
    itself, and never past the others; near enough it takes part, also while the others go on."""
    for number in range(5, 9):
        world.log(number, CHILDREN, *((PARENTS,) if number == 8 else ()))
    world.at(PARENTS, 7)
    world.merger.limit = 15
    together = world.together()
    world.step(together)
    assert world.target.commits == [{"parents": last_sequence(8)}]
    assert together.is_alone(CHILDREN) and together.limit() == Frontier(8, (5, 6, 7, 8))
    assert not together.has_place(world.store.table(CHILDREN))
    world.at(CHILDREN, 6)
    together.caught_up(CHILDREN)
    world.step(together)
    assert world.target.commits[1:] == [{"children": last_sequence(8)}]


def test_a_table_that_lacks_rows_merges_them_by_itself_right_after(world: World) -> None:
    """Guards the way of values that only the source has: such a table must not stop the others, and
    what was read for it is forgotten once a batch needs nothing of it."""
    world.log(5, PARENTS, CHILDREN)
    world.target.faults = [ReplicationError("target:row-missing", table=CHILDREN)]
    together = world.together()
    world.step(together)
    assert world.target.commits == [{"parents": last_sequence(5)}]
    assert world.merger.by_itself == [("children", last_sequence(5))]
    assert world.failing() == {} and world.merger.forgotten == [PARENTS]


def test_rows_before_and_after_a_change_of_columns_in_one_transaction(world: World) -> None:
    """Guards `Together._split`: no batch holds rows of two schemas, and no transaction ends between
    them. Without it the group would stand still."""
    world.log(5, PARENTS, CHILDREN)
    world.log(6, CHILDREN, closed=False)
    world.log(7, PARENTS, CHILDREN, version="v2")
    together = world.together()
    assert world.step(together).is_cut
    assert world.target.commits == [dict.fromkeys(("parents", "children"), last_sequence(5))]
    world.step(together)
    assert world.merger.by_itself == [("children", first_sequence(7) - 1)]
    world.step(together)
    assert world.target.commits[1:] == [dict.fromkeys(("parents", "children"), last_sequence(7))]


@pytest.mark.parametrize(
    "asked",
    [{"is_resync_asked": True}, {"is_chosen": False}, {"is_snapshot_done": False},
     {"state": TableState.SNAPSHOTTING}, {"state": TableState.FAILING}],
    ids=str,
)  # fmt: skip
def test_what_has_no_place_in_the_group(world: World, asked: dict[str, Any]) -> None:
    """Guards `Together.has_place`."""
    together, row = world.together(), world.store.table(PARENTS)
    assert together.has_place(row)
    assert not together.has_place(replace(row, **asked))
