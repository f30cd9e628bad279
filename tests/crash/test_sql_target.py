"""The crash table of a SQL target: SIGKILL at each step of stage, merge, record, publish. In
DuckDB without a JVM each step, in both forms of publishing; and a step of a copy and of a merge on
Spark, into PostgreSQL. The same steps within one process: `unit/targets/test_sql_target.py`."""

from __future__ import annotations

import pytest

from demo.postgres import EmbeddedPostgres
from tests.crash.test_failpoints import died_at
from tests.harness import Traffic, World
from tests.local.world import DuckCopies, DuckCopiesInTwoSteps
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

PATIENT = {"REPLICATOR_LEASE_SECONDS": "120"}
"""A slow machine is no fault of the order."""
AT_START = ("snapshot_loaded", "copy_swapped", "snapshot_published")
LIVE = ("batch_staged", "batch_merged", "merge_recorded")
AT_RESYNC = ("copy_swapped",)
ANNOUNCED = "copy_announced"
ON_SPARK = ("copy_swapped", "batch_merged")


class OnSpark(PostgresTargetWorld):
    """The product as it runs."""

    program = World.program


def first_copy(world: World, traffic: Traffic, *steps: str) -> None:
    """Die at each step of the first copy."""
    for name in steps:
        world.arm(name)
        died_at(world, world.start(), name)
        assert set(world.states().values()) != {"replicating"}, "nothing remained to be done"
        traffic.write(10)


def merges(world: World, traffic: Traffic, *steps: str) -> None:
    """Die at each step of a merge."""
    for name in steps:
        child = world.start()
        world.settle()
        with traffic.going_on():
            world.arm(name)
            died_at(world, child, name)
        assert any(world.differences(t) for t in world.tables), "nothing remained to be done"
        traffic.write(5)


def resyncs(world: World, traffic: Traffic, *steps: str) -> None:
    """Die at each step of a re-sync; readers have the rows of one generation then."""
    for name in steps:
        child = world.start()
        world.settle()
        with traffic.going_on():
            world.arm(name)
            world.resync("views")
            died_at(world, child, name)
        assert "snapshotting" in world.states().values()
        assert world.target_rows("views"), "the old rows went away before the new ones were there"
        traffic.write(5)


@pytest.mark.parametrize(
    "kind", [DuckCopiesInTwoSteps, pytest.param(DuckCopies, marks=pytest.mark.long)]
)
def test_a_kill_at_each_step_of_a_sql_target_loses_and_doubles_nothing(
    world_maker: MakeWorld, kind: type[DuckCopies]
) -> None:
    """Guards the order of a SQL target's writes (CORRECTNESS 13, 15, 16). `views` has no key, so a
    batch or a snapshot that comes twice shows; a table that was published and not recorded must be
    known as our own."""
    announced = () if kind.publishes_at_once else (ANNOUNCED,)
    with world_maker(kind=kind, environment=PATIENT) as world:
        traffic = Traffic(world.database, seed=19)
        first_copy(world, traffic, *announced, *AT_START)
        merges(world, traffic, *LIVE)
        resyncs(world, traffic, *AT_RESYNC)
        world.start()
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set(), "a staging table is left over"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.integration
def test_a_kill_of_a_copy_and_of_a_merge_on_spark_into_postgresql(
    world_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """The same with the product's own parts: tasks in Spark's workers, a real server that goes on
    with a transaction for a while after its client died."""
    with (
        fresh_database(postgres) as copies,
        world_maker(kind=OnSpark, copies=copies, environment=PATIENT) as world,
    ):
        traffic = Traffic(world.database, seed=29)
        first_copy(world, traffic, ON_SPARK[0])
        merges(world, traffic, *ON_SPARK[1:])
        world.start()
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set(), "a staging table is left over"
