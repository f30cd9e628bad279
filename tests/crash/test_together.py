"""All tables merge in one transaction of the target: a reader of the copies of a Django application
finds no row without its parent, ever, with a kill at each step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.postgres import EmbeddedPostgres
from tests.crash.test_failpoints import died_at
from tests.families import FAMILY_TABLES, Reader, Requests, make_families
from tests.harness import World, until
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.mysql_target_world import MysqlTargetWorld
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.timeout(600)]
STEPS = ("batch_staged", "batch_merged", "target_merged", "merge_recorded")
TOGETHER = {"consistent": "on"}
FAMILIES = {"prepare": make_families, "tables": FAMILY_TABLES}
REPEATABLE = "BEGIN ISOLATION LEVEL REPEATABLE READ"
SNAPSHOT = "START TRANSACTION WITH CONSISTENT SNAPSHOT"


@pytest.fixture
def copies(postgres: EmbeddedPostgres) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


def walk(world: World, reader: Reader, steps: tuple[str, ...], *, looks: int) -> None:
    """Requests and a reader go on while the run dies at each of the steps."""
    world.start()
    world.settle()
    requests = Requests(world.database)
    with requests.going_on(), reader.going_on():
        for step in steps:
            world.moves_on("review")
            world.arm(step)
            assert world.child is not None
            died_at(world, world.child, step)
            world.start()
        world.moves_on("review")
        wanted = reader.looks + looks
        until(lambda: reader.looks > wanted, "the reader looked")
        world.moves_on("author")
    assert requests.done > 20


def ends_well(world: World) -> None:
    """The copies are equal, and nothing of ours is left."""
    world.assert_equal()
    assert world.stop() == 0
    assert world.left_over("review") == set()


def test_no_reader_finds_a_row_without_its_parent(world_maker: MakeWorld, copies: Database) -> None:
    """Guards CORRECTNESS 35: with `consistent`, all tables and all progress rows change in one
    transaction of the target, at an end of the source's log, also where a run dies between that
    commit and its record."""
    kind = PostgresTargetWorld
    with world_maker(kind=kind, copies=copies, options=TOGETHER, **FAMILIES) as world:
        reader = Reader(copies.connect, REPEATABLE, "shop.")
        walk(world, reader, ("merge_recorded",), looks=50)
        assert reader.found == {}
        ends_well(world)


@pytest.mark.long
def test_no_reader_finds_one_whatever_step_a_run_dies_at(
    world_maker: MakeWorld, copies: Database
) -> None:
    """The same at each step of the order, twice."""
    kind = PostgresTargetWorld
    with world_maker(kind=kind, copies=copies, options=TOGETHER, **FAMILIES) as world:
        reader = Reader(copies.connect, REPEATABLE, "shop.")
        walk(world, reader, 2 * STEPS, looks=200)
        assert reader.found == {}
        ends_well(world)


@pytest.mark.long
@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
def test_no_reader_of_mysql_finds_one(
    world_maker: MakeWorld, flavour: str, request: pytest.FixtureRequest
) -> None:
    """The same into MariaDB and MySQL, whose readers have a consistent snapshot too."""
    server: SqlServer = request.getfixturevalue(flavour)
    with (
        fresh_sql_database(server) as copies,
        world_maker(kind=MysqlTargetWorld, copies=copies, options=TOGETHER, **FAMILIES) as world,
    ):
        reader = Reader(copies.connect, SNAPSHOT)
        walk(world, reader, STEPS, looks=200)
        assert reader.found == {}
        ends_well(world)


@pytest.mark.long
def test_without_the_option_the_reader_finds_some(world_maker: MakeWorld, copies: Database) -> None:
    """Guards the reader itself: it would see what the option prevents."""
    with world_maker(kind=PostgresTargetWorld, copies=copies, **FAMILIES) as world:
        reader = Reader(copies.connect, REPEATABLE, "shop.")
        walk(world, reader, (), looks=200)
        assert reader.found != {}
        ends_well(world)


@pytest.mark.long
def test_deferrable_foreign_keys_of_the_target_hold_and_a_failing_table_is_left_out(
    world_maker: MakeWorld, copies: Database
) -> None:
    """Guards `SET CONSTRAINTS ALL DEFERRED`: foreign keys that a person made in the copies are
    checked at each commit, and none stops a table, in whatever order the tables change. A table
    that fails is left out, joins again once its fault is gone, and the others go on."""
    kind = PostgresTargetWorld
    with world_maker(kind=kind, copies=copies, options=TOGETHER, **FAMILIES) as world:
        world.start()
        world.settle()
        for child, parent in (("book", "author"), ("review", "book")):
            copies.execute(
                f"ALTER TABLE shop.{child} ADD CONSTRAINT {child}_fk FOREIGN KEY ({parent}_id)"
                f" REFERENCES shop.{parent} DEFERRABLE INITIALLY IMMEDIATE"
            )
        with Requests(world.database).going_on():
            for _ in range(5):
                world.moves_on("review")
                assert set(world.states().values()) == {"replicating"}
            copies.execute("ALTER TABLE shop.review DROP CONSTRAINT review_fk")
            copies.execute("ALTER TABLE shop.review ADD CHECK (stars < 3) NOT VALID")
            world.until_states("failing target:postgresql-constraint", "review")
            world.moves_on("author")
            copies.execute("ALTER TABLE shop.review DROP CONSTRAINT review_stars_check")
            world.until_states("replicating", "review", seconds=60)
            world.moves_on("review")
        ends_well(world)
