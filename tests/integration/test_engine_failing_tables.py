"""A table that fails stops alone; it comes back by itself only where nothing was lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.harness import NAMESPACE, Traffic, World
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

COPIES = ("dropped", "replaced", "behind", "fine")


def make_copies(database: Database) -> None:
    database.execute("CREATE SCHEMA shop")
    for name in COPIES:
        database.execute(
            f"CREATE TABLE shop.{name} (id int PRIMARY KEY, v text);"
            f"INSERT INTO shop.{name} SELECT i, 'v' || i FROM generate_series(1, 500) i"
        )


def write(database: Database, first: int) -> None:
    for name in COPIES:
        database.execute(
            f"INSERT INTO shop.{name} SELECT i, 'new' FROM generate_series({first}, "
            f"{first + 50}) i;"
            f"UPDATE shop.{name} SET v = v || '+' WHERE id % 10 = 0"
        )


def restore(world: World, name: str, metadata: str) -> None:
    """The catalog says of a table what it said earlier, as after a restore of its database."""
    with closing(sqlite3.connect(world.folder / "catalog.db")) as catalog:
        catalog.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?", [metadata, name]
        )
        catalog.commit()


@pytest.mark.long
def test_tables_whose_target_was_touched_fail_alone_and_come_back_by_resync(
    world_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 13: a merge into a table that is not the one we wrote, or is older than
    what we wrote, would silently lose rows; and the engine's isolation of tables: one fault
    stopping the run would stop `fine` too."""
    with world_maker(prepare=make_copies, tables=COPIES) as world:
        child = world.start()
        world.settle()
        older = world.lake_table("behind").metadata_location
        write(world.database, 1000)
        world.assert_equal()

        catalog = world.lake_table("fine").catalog
        catalog.drop_table((NAMESPACE, "dropped"))
        schema = world.lake_table("replaced").schema()
        catalog.drop_table((NAMESPACE, "replaced"))
        catalog.create_table((NAMESPACE, "replaced"), schema)
        restore(world, "behind", older)
        write(world.database, 2000)

        world.until_states("failing target:table-missing", "dropped")
        world.until_states("failing target:table-replaced", "replaced")
        world.until_states("failing target:table-behind", "behind")
        world.assert_equal("fine")
        write(world.database, 3000)
        world.assert_equal("fine")
        assert sum(s.startswith("failing") for s in world.states().values()) == 3
        assert world.row("dropped").retry_at is None, "a lost table would be tried again"
        assert world.stop() == 0

        child = world.start()
        world.assert_equal("fine")
        assert sum(s.startswith("failing") for s in world.states().values()) == 3
        for name in COPIES[:3]:
            world.resync(name)
        write(world.database, 4000)
        world.assert_equal("dropped", "behind", "fine")
        world.until_states("failing target:table-taken", "replaced")
        catalog.drop_table((NAMESPACE, "replaced"))
        world.resync("replaced")
        world.assert_equal()
        assert not child.is_dead()
        assert world.stop() == 0


def test_a_table_that_may_not_be_read_waits_for_the_right_and_comes_back_by_itself(
    twin_maker: MakeWorld, request: pytest.FixtureRequest
) -> None:
    """Guards the retry of a table (issue 3, section 2): treating a missing right as final would
    need a person, treating it as the run's fault would stop the other tables."""
    server = request.getfixturevalue("postgres")
    user = "reader_of_engine_test"

    def prepare(database: Database) -> None:
        make_copies(database)
        database.user(user, "LOGIN REPLICATION")
        database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {user};"
                         f"GRANT USAGE ON SCHEMA shop TO {user}")  # fmt: skip
        for name in COPIES:
            database.execute(f"ALTER TABLE shop.{name} OWNER TO {user}")
        database.execute(f"REVOKE SELECT ON shop.dropped FROM {user}")

    try:
        with twin_maker(
            prepare=prepare, tables=("dropped", "fine"), source={"user": user}
        ) as world:
            world.start()
            world.until_states("failing source:select-right", "dropped")
            write(world.database, 1000)
            world.assert_equal("fine")
            world.until(
                lambda: world.row("dropped").retry_at, "the table says when it is tried again"
            )
            world.database.execute(f"GRANT SELECT ON shop.dropped TO {user}")
            world.assert_equal()
            assert world.stop() == 0
    finally:
        server.execute(f"DROP ROLE IF EXISTS {user}")


def test_a_slot_that_is_gone_or_made_again_is_said_plainly_and_resync_brings_all_tables_back(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 23. Making a new slot silently, or reading one that somebody made again,
    would lose everything committed in between."""
    with twin_maker(tables=("items", "views")) as world:
        traffic = Traffic(world.database)
        world.start()
        world.settle()
        assert world.stop() == 0
        slot = world.replicator.slot_name
        world.database.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        traffic.write(10)

        world.start()
        world.until_states("failing source:slot-missing")
        world.until(lambda: slot in world.log_text(), "the log names the slot")
        traffic.write(10)
        for name in world.tables:
            world.resync(name)
        traffic.write(10)
        world.assert_equal()
        assert world.stop() == 0

        world.database.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        traffic.write(10)
        world.database.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        world.start()
        world.until_states("failing source:position-lost")
        for name in world.tables:
            world.resync(name)
        traffic.write(10)
        world.assert_equal()
        assert world.stop() == 0
