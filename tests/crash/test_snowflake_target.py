"""SIGKILL at each step of a copy and of a merge into Snowflake, seen in the emulator: source and
copies come to be equal. The runs need no JVM, but for one."""

from __future__ import annotations

import pytest

from tests.crash.test_sql_target import (
    ANNOUNCED,
    AT_RESYNC,
    AT_START,
    LIVE,
    ON_SPARK,
    PATIENT,
    first_copy,
    merges,
    resyncs,
)
from tests.harness import Traffic, World
from tests.snowflake_server import SnowflakeServer
from tests.snowflake_world import SnowflakeWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200), pytest.mark.long]


class OnSpark(SnowflakeWorld):
    """The product as it runs."""

    program = World.program


def killed(world: SnowflakeWorld, *steps: tuple[str, ...]) -> None:
    """Kill at these steps of the first copy, of merges and of a re-sync; then all is equal."""
    traffic = Traffic(world.database, seed=43)
    for kill, names in zip((first_copy, merges, resyncs), steps, strict=False):
        kill(world, traffic, *names)
    world.start()
    world.assert_equal()
    assert world.stop() == 0
    assert world.left_over("views") == set(), "a staging table is left over"


def test_a_kill_at_each_step_loses_and_doubles_nothing(
    world_maker: MakeWorld, snowflake: SnowflakeServer
) -> None:
    """Guards the order of writes where a clone takes no part in a transaction (CORRECTNESS 13, 15,
    16): a table that was put in its place and not recorded must be known as our own. `views` has no
    key, so what comes twice shows."""
    with world_maker(kind=SnowflakeWorld, server_of_copies=snowflake, environment=PATIENT) as world:
        assert isinstance(world, SnowflakeWorld)
        killed(world, (ANNOUNCED, *AT_START), LIVE, AT_RESYNC)


@pytest.mark.spark
@pytest.mark.integration
def test_a_kill_of_a_copy_and_of_a_merge_on_spark(
    world_maker: MakeWorld, snowflake: SnowflakeServer
) -> None:
    """The same with the product's own parts: tasks in Spark's workers."""
    with world_maker(kind=OnSpark, server_of_copies=snowflake, environment=PATIENT) as world:
        assert isinstance(world, SnowflakeWorld)
        killed(world, ON_SPARK[:1], ON_SPARK[1:])
