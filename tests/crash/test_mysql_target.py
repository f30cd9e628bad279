"""SIGKILL at each step of a copy and of a merge into MariaDB and MySQL, and the server away: source
and copies come to be equal. The runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.test_sql_target import (
    ANNOUNCED,
    AT_RESYNC,
    AT_START,
    LIVE,
    PATIENT,
    first_copy,
    merges,
    resyncs,
)
from tests.harness import Traffic, World
from tests.mysql_servers import MariadbServer, SqlDatabase, fresh_sql_database
from tests.mysql_target_world import MysqlTargetWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


@pytest.fixture
def copies(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """The target's database, on the server of this name."""
    with fresh_sql_database(request.getfixturevalue(str(request.param))) as made:
        yield made


SOME = ((ANNOUNCED, "copy_swapped"), ("batch_merged",), ())
ALL = ((ANNOUNCED, *AT_START), LIVE, AT_RESYNC)
Steps = tuple[tuple[str, ...], ...]


@pytest.mark.parametrize(
    ("copies", "steps"),
    [
        pytest.param("mariadb", SOME, id="some steps", marks=pytest.mark.long),
        pytest.param("mariadb", ALL, id="mariadb", marks=pytest.mark.long),
        pytest.param("mysql", ALL, id="mysql", marks=pytest.mark.long),
    ],
    indirect=["copies"],
)
def test_a_kill_at_each_step_loses_and_doubles_nothing(
    world_maker: MakeWorld, copies: SqlDatabase, steps: Steps
) -> None:
    """Guards the order of writes where a rename takes no part in a transaction (CORRECTNESS 13, 15,
    16): a table that was put in its place and not recorded must be known as our own. `views` has no
    key, so what comes twice shows."""
    with world_maker(kind=MysqlTargetWorld, copies=copies, environment=PATIENT) as world:
        traffic = Traffic(world.database, seed=31)
        for kill, names in zip((first_copy, merges, resyncs), steps, strict=True):
            kill(world, traffic, *names)
        world.start()
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set(), "a staging table is left over"


def _goes_on(world: World) -> None:
    position = world.position()
    world.until(lambda: world.position() > position, "capture goes on")


@pytest.mark.long
def test_a_target_that_is_killed_stops_merging_only(world_maker: MakeWorld) -> None:
    """Guards CORRECTNESS 28, and the answer that is lost with the server: without its target a run
    goes on capturing, says what is wrong, and its tables come back by themselves."""
    durable = {"innodb-flush-log-at-trx-commit": "1"}
    with (
        MariadbServer(durable) as server,
        fresh_sql_database(server) as copies,
        world_maker(kind=MysqlTargetWorld, copies=copies, environment=PATIENT) as world,
    ):
        traffic = Traffic(world.database, seed=37)
        child = world.start()
        world.settle()
        for _ in range(3):
            with traffic.going_on():
                world.moves_on("items")
                server.kill()
                world.until(
                    lambda: any("target:mysql-" in s for s in world.states().values()),
                    "a table says it",
                )
                _goes_on(world)
            server.start()
            world.assert_equal()
        assert world.child is child and not child.is_dead()
        assert world.stop() == 0
        assert world.left_over("items") == set()
