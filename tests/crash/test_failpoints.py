"""The crash table: SIGKILL at every step of the order of writes, and the next run goes on with
nothing lost or doubled.

One world serves all: each test kills the process that the one before it started, so that a start is
also a recovery.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from runners.engine import failpoints
from tests.harness import Child, Traffic, World, until
from tests.local.world import local_twin
from tests.shared_spark import SharedServer
from tests.world_fixtures import LOCAL, SPARK, MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

AT_START = (
    "snapshot_begun",
    "snapshot_chunks_recorded",
    "snapshot_loaded",
    "snapshot_published",
    "snapshot_recorded",
)
AT_RESYNC = ("snapshot_chunks_recorded", "snapshot_loaded", "snapshot_published")
AT_CHOICE = ("tables_published", "tables_withdrawn")
AT_ROUND = ("round_ended", "rewind_begun", "rewind_replayed", "rewind_published")
AT_QUARANTINE = ("rows_quarantined",)
AT_CHANGE = ("target_evolved",)
NOT_LIVE = (
    *failpoints.REPAIR_NAMES,
    *failpoints.SINK_NAMES,
    *failpoints.SQL_NAMES,
    *failpoints.KEYED_NAMES,
    *failpoints.DELIVERY_NAMES,
    *AT_START,
    *AT_CHOICE,
    *AT_ROUND,
    *AT_QUARANTINE,
    *AT_CHANGE,
)
LIVE = tuple(n for n in failpoints.NAMES if n not in NOT_LIVE)
SHARED = "shared spark"
CASES = [
    *((SHARED, n) for n in LIVE),
    *(pytest.param(kind, n, marks=pytest.mark.long) for kind in (SPARK, LOCAL) for n in LIVE),
]


Place = tuple[World, Traffic]


@pytest.fixture(scope="module")
def place_on(
    world_maker: MakeWorld, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Place]]:
    """A world and its traffic, on a shared Spark, on one of its own, or without a JVM. It stays
    while that kind is asked for; a fixture with `runs_on` as its parameter is made for each case
    anew."""
    made: dict[str, Place] = {}
    with ExitStack() as stack:

        def place(runs_on: str) -> Place:
            if runs_on not in made:
                made.clear()
                stack.close()
                options = {"tables": ("items", "views"), "options": {"keep_hours": 0}}
                if runs_on == LOCAL:
                    made_world = world_maker(kind=local_twin(World), **options)
                elif runs_on == SPARK:
                    made_world = world_maker(**options)
                else:
                    server: SharedServer = request.getfixturevalue("shared_spark")
                    made_world = world_maker(environment=server.environment, **options)
                world = stack.enter_context(made_world)
                made[runs_on] = world, Traffic(world.database)
            return made[runs_on]

        yield place


@pytest.fixture
def world(place_on: Callable[[str], Place], runs_on: str) -> World:
    return place_on(runs_on)[0]


@pytest.fixture
def traffic(place_on: Callable[[str], Place], runs_on: str) -> Traffic:
    return place_on(runs_on)[1]


def died_at(world: World, child: Child, name: str) -> None:
    """The child ended by SIGKILL, and the flag file says that it was itself at the failpoint."""
    until(child.is_dead, lambda: f"death at {name}\n{world.states()}\n{child.tail()}")
    assert child.wait() == -signal.SIGKILL, child.tail()
    assert world.flag(name).read_text() == str(child.pid)
    child.end()
    assert child.run.state == "lost"


def running(world: World) -> Child:
    if world.child is None or world.child.is_dead():
        if world.child is not None:
            world.child.end()
        world.start()
    assert world.child is not None
    world.settle()
    return world.child


@pytest.mark.parametrize("runs_on", [SHARED])
def test_a_first_snapshot_that_died_as_it_was_published_is_whole(
    world: World, traffic: Traffic
) -> None:
    """The world's first start. The other steps of a first snapshot are below, without a JVM."""
    world.arm("snapshot_published")
    died_at(world, world.start(), "snapshot_published")
    assert set(world.states().values()) != {"replicating"}, "nothing remained to be done"
    traffic.write(20)
    world.start()
    world.assert_equal()


@pytest.mark.parametrize(("runs_on", "name"), CASES)
def test_a_kill_at_any_step_loses_and_doubles_nothing(
    world: World, traffic: Traffic, name: str
) -> None:
    """Guards the order of writes (DESIGN 3; CORRECTNESS 1, 4, 13, 27, 28). Any two steps exchanged,
    a position recorded before its segment, an acknowledgement before the record, or a merge whose
    token is not looked at after the crash would lose or double rows of `views` or leave a stale row
    in the keyed tables."""
    child = running(world)
    number = world.last_segment()
    with traffic.going_on():
        world.arm(name)
        died_at(world, child, name)
    assert any(world.differences(t) for t in world.tables), "nothing remained to be done"
    traffic.write(20)

    world.start()
    world.assert_equal()
    assert world.last_segment() > number


@pytest.mark.parametrize(
    ("runs_on", "name"),
    [
        (LOCAL, AT_RESYNC[-1]),
        *(
            pytest.param(kind, n, marks=pytest.mark.long)
            for kind in (LOCAL, SPARK)
            for n in AT_RESYNC
            if (kind, n) != (LOCAL, AT_RESYNC[-1])
        ),
    ],
)
def test_a_kill_within_a_resync_leaves_the_old_rows_and_copies_again(
    world: World, traffic: Traffic, name: str
) -> None:
    """Guards CORRECTNESS 15 and 16: a new generation is published in one commit. Loading into the
    live table, or keeping a half loaded staging place, would show here as lost or doubled rows."""
    child = running(world)
    with traffic.going_on():
        world.arm(name)
        world.resync("views")
        world.resync("items")
        died_at(world, child, name)
    states = world.states()
    assert "snapshotting" in states.values(), states
    assert world.target_rows("items"), "the old rows went away before the new ones were there"
    traffic.write(20)

    world.start()
    world.assert_equal()
    for table in world.tables:
        assert not world.left_over(table), f"{table}: a staging branch is left over"


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        (local_twin(World), AT_START),
        pytest.param(World, AT_START, marks=pytest.mark.long),
    ],
    ids=[LOCAL, SPARK],
)
def test_a_kill_at_each_step_of_the_first_snapshot_copies_exactly_once(
    world_maker: MakeWorld, kind: type[World], steps: tuple[str, ...]
) -> None:
    """Guards CORRECTNESS 16 and 17: chunks of a view that died are discarded and the table starts
    again at a new view. Appending to what was staged would double rows; trusting the old position
    would lose those written since."""
    with world_maker(kind=kind, tables=("items", "views")) as fresh:
        traffic = Traffic(fresh.database, seed=7)
        for name in steps:
            fresh.arm(name)
            died_at(fresh, fresh.start(), name)
            assert set(fresh.states().values()) != {"replicating"}, "nothing remained to be done"
            traffic.write(20)
        fresh.start()
        fresh.assert_equal()
        assert fresh.stop() == 0
