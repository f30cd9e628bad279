"""SIGKILL around a commit to PostgreSQL, and the server away: source and copies come to be equal.
The runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.postgres import EmbeddedPostgres
from tests.crash.test_failpoints import died_at, running
from tests.harness import Traffic, World, until
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]
WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND backend_type = 'client backend'
"""


@pytest.fixture(scope="module")
def target_server() -> Iterator[EmbeddedPostgres]:
    """A server of the copies alone: a test stops it."""
    with EmbeddedPostgres(fsync=False) as made:
        yield made


@pytest.fixture(scope="module")
def world(world_maker: MakeWorld, target_server: EmbeddedPostgres) -> Iterator[World]:
    with (
        fresh_database(target_server) as copies,
        world_maker(kind=PostgresTargetWorld, copies=copies) as made,
    ):
        made.start()
        made.settle()
        yield made


@pytest.fixture(scope="module")
def traffic(world: World) -> Traffic:
    return Traffic(world.database)


@pytest.fixture
def copies(world: World) -> Database:
    assert isinstance(world, PostgresTargetWorld)
    return world.there


@pytest.mark.long
def test_a_kill_between_load_and_merge_loses_and_doubles_nothing(
    world: World, traffic: Traffic, copies: Database
) -> None:
    """Guards the order of writes of a SQL target (CORRECTNESS 13): the batch is loaded, its
    transaction waits for a lock, and the process dies. Nothing of the batch may be there, and the
    next run merges it once and removes what was left."""
    with copies.connect(autocommit=False) as other:
        other.execute("LOCK TABLE shop.items, shop.views")
        traffic.write(20)
        world.until(lambda: copies.execute(WAITING)[0][0], "the merge waits")
        world.kill()
        other.rollback()
    until(lambda: not copies.execute(WAITING)[0][0], "the server noticed")
    assert any(world.differences(t) for t in world.tables)
    assert world.left_over("items")
    traffic.write(5)
    world.start()
    world.assert_equal()


@pytest.mark.long
def test_a_kill_between_merge_and_record_merges_nothing_twice(
    world: World, traffic: Traffic
) -> None:
    """Guards the progress row in the merge's own transaction (CORRECTNESS 13): `views` has no key,
    so a batch that is merged twice shows."""
    child = running(world)
    with traffic.going_on():
        world.arm("target_merged")
        died_at(world, child, "target_merged")
    traffic.write(5)
    world.start()
    world.assert_equal()


def test_a_target_that_is_away_stops_merging_only(
    world: World, traffic: Traffic, copies: Database
) -> None:
    """Guards CORRECTNESS 28: without its target a run goes on capturing, says what is wrong, and
    its tables come back by themselves."""
    child = running(world)
    copies.server.stop("immediate")
    traffic.write(10)
    world.until(
        lambda: all(s.startswith("failing target:postgresql-") for s in world.states().values()),
        "every table says it",
    )
    position = world.position()
    traffic.write(10)
    world.until(lambda: world.position() > position, "capture goes on")
    world.kill()
    child = world.start()
    position = world.position()
    traffic.write(10)
    world.until(lambda: world.position() > position, "a new run captures too")
    copies.server.start()
    world.assert_equal()
    assert world.child is child and not child.is_dead()
    assert world.stop() == 0
    assert world.left_over("items") == set()
