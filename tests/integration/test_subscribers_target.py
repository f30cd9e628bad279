"""The whole path into the subscribers target, over kills: snapshots are the source's rows, and a
reader that follows the changes has them too."""

from __future__ import annotations

import json

import pytest

from tests.harness import Traffic
from tests.subscribers_world import Follower, LocalSubscribersWorld, SubscribersWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(SubscribersWorld, marks=pytest.mark.long), LocalSubscribersWorld],
    ids=["on Spark", "without a JVM"],
)
def test_readers_have_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld, kind: type[SubscribersWorld]
) -> None:
    """Guards the target over the whole path: every type, composite keys, unsent values, changed
    keys, with a SIGKILL while changes are delivered, then a TRUNCATE and a fresh copy."""
    with world_maker(kind=kind, tables=("items", "pairs")) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until_states("replicating")
        follower = Follower(world, "search", "items")
        follower._snapshot()
        traffic.write(30)
        world.assert_equal()
        follower.catch_up()
        assert follower.changes > 0
        assert_follows(world, follower)

        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        world.start()
        traffic.write(10)
        world.assert_equal()
        follower.catch_up()
        assert_follows(world, follower)
        assert follower.copies == 1

        world.database.execute("TRUNCATE shop.pairs")
        world.resync("items")
        traffic.write(5)
        world.assert_equal()
        follower.catch_up()
        assert_follows(world, follower)
        assert follower.copies == 2
        assert world.stop() == 0


def assert_follows(world: SubscribersWorld, follower: Follower) -> None:
    """The follower's rows have the source's keys and numbers."""
    source = world.database.execute("SELECT id, n FROM shop.items")
    wanted = {json.dumps([key]): n for key, n in source}
    assert {key: row["n"] for key, row in follower.rows.items()} == wanted
