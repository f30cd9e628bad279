"""The order of a sink's writes, without a JVM: delivered, recorded, then resolved; and what a crash
at each step leaves."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.changes import (
    Op,
    OpCounts,
    change_schema,
    first_sequence,
    last_sequence,
)
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.snapshot import Chunk
from replicators.connectors.target import (
    ChangeBatch,
    ChangeSink,
    MergeTarget,
    RefusedRow,
    TargetTable,
)
from runners.engine import failpoints
from runners.engine.apply import deliver
from runners.engine.apply.deliver import Deliverer, lanes_of
from runners.engine.apply.resolve import SETTLE_SECONDS, Resolver
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.frontier import Frontier, frontier_at
from runners.engine.changelog.segments import ChangeLog
from runners.engine.checkpoints.rounds import NoRounds
from runners.engine.fold.plan import FoldPlan
from runners.engine.kinds import Kit
from runners.engine.scheduler import Scheduler
from runners.engine.schema.evolution import Evolver
from runners.engine.settings import RunnerSettings
from runners.engine.snapshot.deliver import SinkSnapshotter
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, TableRow, TableState
from runners.engine.store.target_table import target_table
from runners.engine.tasks.local import LocalTasks
from tests.sinks import FolderSink
from tests.unit.engine.changes import SCHEMA
from tests.unit.engine.test_frontier import segment

TABLE = SCHEMA.id
AT = 1_000.0


class Killed(BaseException):
    """In place of SIGKILL: what is in the store and in the folder then is what is durable."""


def write_changes(
    folder: Path, number: int, keys: Sequence[int], version: str = "v1"
) -> ChangeFileRow:
    """A change file of segment `number`: an update of each key, committed at `AT + number`."""
    rows = [
        {
            "_sequence": first_sequence(number) + at,
            "_op": int(Op.UPDATE),
            "_committed_at": round((AT + number) * 1e6),
            "_transaction": number,
            "_position": number * 100,
            "_unchanged": None,
            "id": key,
            "part": "p",
            "a": f"{number}.{at}",
            "b": None,
            "_before": None,
        }
        for at, key in enumerate(keys)
    ]
    path = folder / f"{number}-{version}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, change_schema(SCHEMA)), path)
    data = path.read_bytes()
    return ChangeFileRow(
        table=TABLE, segment=number, path=str(path), version=version, schema=SCHEMA,
        counts=OpCounts(updates=len(keys)),
        first_sequence=first_sequence(number), last_sequence=first_sequence(number) + len(keys) - 1,
        first_committed_at=AT + number, last_committed_at=AT + number,
        first_position=number * 100, last_position=number * 100,
        size_bytes=len(data), crc32=zlib.crc32(data),
    )  # fmt: skip


class Session:
    """A view of two chunks, of two rows each."""

    point = SimpleNamespace(position=Position(50), token="")  # noqa: S106

    def plan(self, schema: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        return [Chunk(schema.id, n, f"{n}", 2) for n in range(2)]

    def is_alive(self) -> bool:
        return True


def read_chunk(chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
    """Rows 10 and 11, or 20 and 21."""
    first = 10 * (chunk.number + 1)
    rows = [{"id": first + n, "part": "p", "a": "read", "b": None} for n in range(2)]
    yield pa.RecordBatch.from_pylist(rows, schema.arrow_schema())


class World:
    """A table of a sink: what outlives a crash is in `store` and `sink`; `start` makes the rest
    anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryStore([TABLE])
        self.sink = FolderSink(folder / "sink", LocalTasks())
        self.marks: tuple[tuple[int, float], ...] = ()
        self.start()

    def start(self) -> None:
        """What a run begins with."""
        evolver = Evolver(None, self.store, SchemaPolicy.EVOLVE)
        log = ChangeLog(str(self.folder / "log"), "r1", "a")
        self.deliverer = Deliverer(self.sink, self.store, log, "r1", evolver)
        self.backlog = Backlog(self.store.segments(), self.store.memory().last_segment)
        self.resolver = Resolver(self.sink, self.store, self.backlog, "r1", lambda: self.marks, 1.0)
        self.deliverer.recover(self.row)
        self.mark()

    @property
    def row(self) -> TableRow:
        return self.store.table(TABLE)

    @property
    def table(self) -> TargetTable:
        return target_table("r1", self.row)

    def mark(self) -> None:
        """As the scheduler does after each job."""
        touched = self.backlog.touched(TABLE)
        self.backlog.mark(TABLE, self.deliverer.unmerged(self.row), touched)

    def copy(self) -> None:
        """The table's snapshot, in a generation of its own."""
        generation = self.row.generation + 1
        self.store.table_event(TABLE, "table_snapshot_started", generation=generation)
        snapshotter = SinkSnapshotter(
            self.sink,
            cast(Any, Session()),
            read_chunk,
            RunnerSettings(),
            self.store,
            now=lambda: AT,
        )
        done = snapshotter.copy(self.table, SCHEMA, last_sequence(0))
        assert done == ("", 4)
        self.store.table_event(
            TABLE, "table_snapshot_done", schema=SCHEMA, is_snapshot_done=True,
            merged_sequence=last_sequence(0), snapshot_position=50,
        )  # fmt: skip

    def capture(self, *files: ChangeFileRow) -> None:
        """Segments with these files, captured and decoded."""
        for number in sorted({f.segment for f in files}):
            self.store.record_segment(segment(number), Position(number * 100))
            self.backlog.sealed(segment(number))
        self.store.record_decoded([f.segment for f in files], files)
        self.backlog.decoded([f.segment for f in files], files)

    def deliver(self) -> None:
        """One turn of the table's job."""
        reached = frontier_at(self.store, max((s.number for s in self.store.segments()), default=0))
        files = self.deliverer.pending(self.row, reached)
        if files:
            self.deliverer.merge(self.row, files, reached)
        self.mark()
        mark = self.resolver.due(self.row)
        if mark is not None:
            self.resolver.record({TABLE: mark})
            self.resolver.tell(self.row, mark)

    @property
    def rows(self) -> list[tuple[int, str]]:
        """(id, a) of all that was delivered, in order."""
        return [(r["id"], r["a"]) for r in self.sink.rows(self.table)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def die(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """From now on the process ends where it comes to the failpoint, once."""

    def arm(name: str) -> None:
        assert name in failpoints.NAMES

        def hit(at: str) -> None:
            if at == name:
                monkeypatch.setattr(failpoints, "hit", lambda _: None)
                raise Killed(name)

        monkeypatch.setattr(failpoints, "hit", hit)

    return arm


SNAPSHOT = [(10, "read"), (11, "read"), (20, "read"), (21, "read")]
CHANGES = [(10, "1.0"), (11, "1.1"), (10, "2.0")]


@pytest.mark.parametrize(
    "name", ["snapshot_begun", "snapshot_part_delivered", "snapshot_delivered"]
)
def test_a_snapshot_that_was_cut_off_is_not_in_the_next_generation(
    world: World, die: Callable[[str], None], name: str
) -> None:
    """Guards `ChangeSink.begin` and the order of `SinkSnapshotter`: rows of a try that died would
    be there twice."""
    die(name)
    with pytest.raises(Killed):
        world.copy()
    assert not world.row.is_snapshot_done
    world.start()
    world.copy()
    assert world.rows == SNAPSHOT
    read = world.sink.rows(world.table)
    assert {(r["_op"], r["_sequence"]) for r in read} == {(Op.READ, last_sequence(0))}
    assert {r["_committed_at"].timestamp() for r in read} == {AT}
    assert world.row.resolved_at == AT


@pytest.mark.parametrize(
    ("name", "is_delivered", "is_recorded", "is_resolved", "is_reported"),
    [
        ("changes_delivered", True, False, False, False),
        ("merge_recorded", True, True, False, False),
        ("resolved_recorded", True, True, True, False),
        ("resolved_reported", True, True, True, True),
    ],
)
def test_a_kill_at_any_step_of_a_delivery_loses_and_doubles_nothing(
    world: World,
    die: Callable[[str], None],
    tmp_path: Path,
    name: str,
    *,
    is_delivered: bool,
    is_recorded: bool,
    is_resolved: bool,
    is_reported: bool,
) -> None:
    """Guards the order deliver, record, resolved: recorded before it is delivered, a change would
    be lost; reported before it is recorded, a bucket would be closed that a second try has to write
    to."""
    world.copy()
    world.capture(write_changes(tmp_path, 1, [10, 11]))
    world.marks = ((1, AT + 60),)
    die(name)
    with pytest.raises(Killed):
        world.deliver()
    assert (world.rows[4:] == CHANGES[:2]) is is_delivered
    assert (world.row.merged_sequence == last_sequence(1)) is is_recorded
    assert (world.row.resolved_at > AT) is is_resolved
    assert bool(world.sink.marks(world.table)) is is_reported

    world.start()
    world.capture(write_changes(tmp_path, 2, [10]))
    world.marks = ((2, AT + 120),)
    world.deliver()
    assert world.rows == SNAPSHOT + CHANGES
    assert world.sink.marks(world.table)[-1] == (last_sequence(2), AT + 120 - SETTLE_SECONDS)


def test_half_of_a_batch_that_was_written_is_replaced(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `ChangeBatch.after` where the second try ends elsewhere than the first: what a lane of
    the first had written would be there beside the same changes of the second."""
    monkeypatch.setattr(deliver, "ROWS_A_TASK", 2)
    world.copy()
    files = [write_changes(tmp_path, 1, [10, 11]), write_changes(tmp_path, 2, [10])]
    world.capture(*files)
    plan = FoldPlan(SCHEMA, tuple(files), last_sequence(0), 50, last_sequence(2), "")
    lanes = lanes_of(plan, [f.counts for f in files])
    batch = deliver.ChangeBatch(
        deliver.BatchKind.CHANGES, SCHEMA, last_sequence(0), last_sequence(2), lanes[1:]
    )
    world.sink.deliver(world.table, batch)  # and then the process died
    world.start()
    world.deliver()
    assert world.rows == SNAPSHOT + CHANGES


def test_lanes_are_contiguous_and_keep_the_order_of_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the order of a key's changes over tasks: dealt out by `_sequence % n`, two changes of
    a row could be read in any order."""
    monkeypatch.setattr(deliver, "ROWS_A_TASK", 3)
    files = [write_changes(tmp_path, n, [n, 7]) for n in range(1, 6)]
    after = last_sequence(0)
    plan = FoldPlan(SCHEMA, tuple(files), after, 0, last_sequence(5), "")
    counts = [f.counts for f in files]
    counts[1] = OpCounts()  # none of its rows counts
    lanes = lanes_of(plan, counts)
    assert len(lanes) == 4
    assert [lane.number for lane in lanes] == [0, 1, 2, 3]
    assert (lanes[0].first, lanes[-1].last) == (after + 1, last_sequence(5))
    assert all(a.last + 1 == b.first for a, b in zip(lanes, lanes[1:], strict=False))
    small = replace(plan, task_bytes=1)
    assert len(lanes_of(replace(plan, task_bytes=10 << 20), counts)) == 4
    monkeypatch.setattr(deliver, "ROWS_A_TASK", 1000)
    assert (len(lanes_of(plan, counts)), len(lanes_of(small, counts))) == (1, 4)
    read = [r for lane in lanes for b in lane.read() for r in b.to_pylist()]
    assert [r["_sequence"] for r in read] == sorted(r["_sequence"] for r in read)
    assert [r["a"] for r in read if r["id"] == 7] == ["1.1", "3.1", "4.1", "5.1"]


def test_what_the_snapshot_has_is_not_delivered_again(world: World, tmp_path: Path) -> None:
    """Guards CORRECTNESS 16 in `ChangeLane` and `counts_in`: changes committed before the view
    would come after the rows that have them. The first file is of before the view; the first row of
    the second too."""
    world.copy()
    world.store.table_progress(TABLE, snapshot_position=150)
    second = write_changes(tmp_path, 2, [10, 11])
    rows = pq.read_table(second.path)
    at = rows.schema.get_field_index("_position")
    rows = rows.set_column(at, rows.schema.field(at), pa.array([149, 150], pa.int64()))
    pq.write_table(rows, second.path)
    data = Path(second.path).read_bytes()
    second = replace(second, first_position=149, last_position=150, crc32=zlib.crc32(data))
    world.capture(write_changes(tmp_path, 1, [10]), second)
    world.deliver()
    assert world.rows == [*SNAPSHOT, (11, "2.1")]
    assert world.store.counts[TABLE] == OpCounts(updates=1)


def test_left_out_kinds_are_not_delivered(world: World, tmp_path: Path) -> None:
    """Guards `FoldPlan.excluded` in lanes and their counts; nothing is called where nothing is
    left, and the table moves on."""
    world.copy()
    world.store.table_progress(TABLE, excluded=("updates",))
    world.capture(write_changes(tmp_path, 1, [10]))
    world.deliver()
    assert world.rows == SNAPSHOT and world.row.merged_sequence == last_sequence(1)
    assert world.store.counts[TABLE] == OpCounts()


def test_a_value_that_can_not_be_carried_stops_the_table(world: World, tmp_path: Path) -> None:
    """Guards `refuse_unsupported`: the row would be delivered with NULL in its place, and nobody
    would know."""
    world.copy()
    file = write_changes(tmp_path, 1, [10])
    rows = pq.read_table(file.path)
    rows = rows.append_column("_faulty", pa.array([b"\x04"], pa.binary()))
    rows = rows.append_column("_fault_reason", pa.array(["a: no text"], pa.string()))
    pq.write_table(rows, file.path)
    data = Path(file.path).read_bytes()
    world.capture(replace(file, faults=1, crc32=zlib.crc32(data), size_bytes=len(data)))
    with pytest.raises(ReplicationError, match="source:value-unsupported"):
        world.deliver()
    assert world.rows == SNAPSHOT and world.row.merged_sequence == last_sequence(0)


def test_a_table_is_resolved_only_as_far_as_it_is_delivered(world: World, tmp_path: Path) -> None:
    """Guards `Resolver.due`: told of a mark whose segment is not delivered, a sink would close a
    bucket before its last rows. An idle table follows the newest mark."""
    world.copy()
    world.capture(write_changes(tmp_path, 1, [10]), write_changes(tmp_path, 2, [11]))
    world.marks = ((1, AT + 10), (2, AT + 20), (3, AT + 30))
    assert world.resolver.due(world.row) is None
    files = world.deliverer.pending(world.row, Frontier(1, (1,)))
    world.deliverer.merge(world.row, files, Frontier(1, (1,)))
    world.mark()
    mark = world.resolver.due(world.row)
    assert mark is not None and (mark.sequence, mark.at) == (last_sequence(1), AT + 8)
    world.deliver()
    assert world.sink.marks(world.table) == [(last_sequence(2), AT + 28)]
    assert world.resolver.due(world.row) is None, "the same mark again"


def test_a_mark_never_goes_back(world: World) -> None:
    """Guards the recorded mark: after a restart with the source's clock set back, buckets that are
    closed would be opened again."""
    world.copy()
    world.marks = ((0, AT + 100),)
    world.deliver()
    world.start()
    world.marks = ((0, AT + 50),)
    world.deliver()
    assert world.sink.marks(world.table) == [(last_sequence(0), AT + 98)]
    world.store.record_resolved({TABLE: AT})
    assert world.row.resolved_at == AT + 98


def test_a_failing_table_is_not_resolved(world: World) -> None:
    """Guards `Resolver.due`: what a failing table lacks may have been dropped from the log."""
    world.copy()
    world.marks = ((9, AT + 100),)
    world.store.table_event(TABLE, "table_failed", error_code="target:unreachable", retry_at=1.0)
    assert world.row.state is TableState.FAILING and world.resolver.due(world.row) is None


def test_the_test_sink_is_a_sink_and_nothing_else(world: World) -> None:
    """Guards how the engine tells the kinds apart."""
    assert isinstance(world.sink, ChangeSink) and not isinstance(world.sink, MergeTarget)


class Turns:
    """The scheduler of a world, its jobs ended before a turn counts as over."""

    def __init__(self, world: World) -> None:
        nothing = cast(Any, None)
        world.resolver = Resolver(
            world.sink, world.store, world.backlog, "r1", lambda: world.marks, 1.0
        )
        self.jobs = Scheduler(
            store=world.store,
            merger=world.deliverer,
            writer=world.sink,
            backlog=world.backlog,
            watchdog=cast(Any, SimpleNamespace(step=lambda name: nullcontext())),
            settings=RunnerSettings(maintain_every_commits=1, merge_seconds=0.0),
            replicator="r1",
            snapshots=nothing,
            decoding=nothing,
            streaming=cast(Any, SimpleNamespace(is_done=lambda *_: False, is_in_bulk=False)),
            evolver=world.deliverer._evolver,
            rounds=NoRounds(world.backlog),
            rewinder=None,
            resolver=world.resolver,
        )

    def turn(self) -> None:
        self.jobs.turn()
        for future in list(self.jobs._busy.values()):
            future.result(30)


def test_a_sinks_table_is_delivered_and_marked_turn_by_turn(world: World, tmp_path: Path) -> None:
    """Guards what the scheduler asks a target by protocol: a sink is not tidied up, its tables are
    marked after a delivery and while nothing comes."""
    world.copy()
    turns = Turns(world)
    world.capture(write_changes(tmp_path, 1, [10, 11]), write_changes(tmp_path, 2, [10]))
    world.marks = ((2, AT + 10),)
    for _ in range(3):
        turns.turn()
    assert world.rows == SNAPSHOT + CHANGES
    world.marks = ((2, AT + 10), (2, AT + 20))
    for _ in range(3):
        turns.turn()
    reported = [at for _, at in world.sink.marks(world.table)]
    assert reported == [AT + 10 - SETTLE_SECONDS, AT + 20 - SETTLE_SECONDS]
    assert world.row.state is TableState.REPLICATING


def test_a_rewind_that_no_target_can_do_is_refused_and_the_table_goes_on(world: World) -> None:
    """Guards `Scheduler._rewind` without a rewinder: asked again in each turn, the table would
    never be delivered again."""
    world.copy()
    turns = Turns(world)
    world.store.table_progress(TABLE, rewind_to=AT)
    turns.turn()
    assert world.row.rewind_to is None and world.row.state is TableState.REPLICATING
    assert world.store.events[-1] == (TABLE, "table_rewind_refused")


def test_a_removed_tables_data_goes_where_that_is_asked(world: World) -> None:
    """Guards `Target.drop` for sinks: every generation goes."""
    world.copy()
    world.copy()
    assert world.sink.place(world.table).parent.exists()
    world.sink.drop(world.table)
    assert not world.sink.place(world.table).parent.exists()


def test_a_target_of_neither_kind_and_a_sink_with_other_modes_are_refused(world: World) -> None:
    """Guards `Kit`: a sink whose tables count as mirrors would have rows quarantined that it then
    lacks for ever."""

    def kit(target: Any, *modes: Mode) -> Kit:
        can = TargetCapabilities(delivery=Delivery.AT_LEAST_ONCE, modes=modes)
        plugin = SimpleNamespace(name="odd", capabilities=can)
        job = cast(Any, SimpleNamespace(target=plugin, replicator="r1"))
        unused = cast(Any, None)
        return Kit(job, target, unused, unused, unused, RunnerSettings(task_bytes=7), unused)

    applier = kit(world.sink, Mode.APPEND).applier(cast(Any, None), cast(Any, None))
    assert isinstance(applier, Deliverer) and applier.task_bytes == 7
    with pytest.raises(TypeError, match="append"):
        kit(world.sink, Mode.MIRROR)
    with pytest.raises(TypeError, match="neither"):
        kit(object(), Mode.APPEND)


class PickySink(FolderSink):
    """Refuses rows with an odd id until it takes them."""

    aside: ClassVar[dict[int, str]] = {}
    takes_all: ClassVar[bool] = False
    told: ClassVar[list[int] | None] = None

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Keep what it refuses apart, before the rest is written."""
        if not self.takes_all:
            for lane in batch.lanes:
                rows = [row for b in lane.read() for row in b.to_pylist() if row["id"] % 2]
                self.aside.update({r["id"]: r["a"] for r in rows})
        return super().deliver(table, batch)

    def refused(self, table: TargetTable, limit: int) -> list[RefusedRow] | None:
        found = sorted(self.aside)[:limit]
        if found == PickySink.told:
            return None
        PickySink.told = found
        return [RefusedRow(-n, json.dumps({"id": n}), f"no {self.aside[n]}") for n in found]

    def replay(self, table: TargetTable) -> None:
        if self.takes_all:
            self.aside.clear()


@pytest.fixture
def picky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name, value in (("aside", {}), ("takes_all", False), ("told", None)):
        monkeypatch.setattr(PickySink, name, value)
    world = World(tmp_path)
    world.sink = PickySink(tmp_path / "sink", LocalTasks())
    world.start()
    world.copy()
    return world


def listed(world: World) -> dict[str, str]:
    """What pages show: the key and the reason of each refused row."""
    row = world.row
    return {
        r.key: r.reason
        for r in world.store.quarantined(row.id, row.generation, row.merged_sequence)
    }


def test_refused_rows_are_listed_and_sent_again_when_somebody_asks(
    picky: World, tmp_path: Path
) -> None:
    """Guards `RejectsRows`: rows of the copy and of changes that the target refused are in the
    list, a replay sends them again though no change comes, and they leave the list."""
    picky.capture(write_changes(tmp_path, 1, [10, 13]))
    picky.deliver()
    first = {'{"id": 11}': "no read", '{"id": 13}': "no 1.1", '{"id": 21}': "no read"}
    assert listed(picky) == first
    picky.store.table_progress(TABLE, is_replay_asked=True)
    reached = frontier_at(picky.store, 1)
    assert not picky.deliverer.merge(picky.row, [], reached)
    assert listed(picky) == first and not picky.row.is_replay_asked
    PickySink.takes_all = True
    picky.store.table_progress(TABLE, is_replay_asked=True)
    picky.capture(write_changes(tmp_path, 2, [14]))
    picky.deliver()
    assert not listed(picky) and not picky.row.is_replay_asked


def test_a_kill_before_the_list_is_recorded_loses_no_refused_row(
    picky: World, tmp_path: Path, die: Callable[[str], None]
) -> None:
    """Guards the order: the target has the refused rows before the list, and the next run's list is
    whole."""
    picky.capture(write_changes(tmp_path, 1, [15]))
    die("changes_delivered")
    with pytest.raises(Killed):
        picky.deliver()
    assert '{"id": 15}' not in listed(picky)
    PickySink.told = None
    picky.start()
    picky.deliver()
    assert '{"id": 15}' in listed(picky)
