"""What a later look into the catalog finds out: enums whose values were renamed before their rows
were read, and tables that were away from the stream for a while (CORRECTNESS 21)."""

from __future__ import annotations

import pytest

from runners.models import Event
from tests.harness import World
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

TABLES = ("renamed", "listed", "grown", "returned", "calm")
FAST_LOOKS = {"REPLICATOR_CATALOG_SECONDS": "1"}


def make_tables(database: Database) -> None:
    database.execute("CREATE SCHEMA shop; CREATE TYPE shop.mood AS ENUM ('calm')")
    for name in TABLES:
        database.execute(
            f"CREATE TABLE shop.{name} (id int PRIMARY KEY, v text, m shop.mood DEFAULT 'calm');"
            f"INSERT INTO shop.{name} SELECT i, 'v' FROM generate_series(1, 50) i"
        )


def reported(world: World, name: str) -> list[str]:
    found = Event.objects.filter(replicator=world.replicator, table_name=name)
    return [e.facts["change"] for e in found.filter(kind="schema_resync").order_by("pk")]


@pytest.mark.long
def test_what_the_log_alone_does_not_tell_is_found_by_a_look(twin_maker: MakeWorld) -> None:
    """Guards rows of before a rename that are read after it: their value is none that the type was
    described with, and stays in the copy for ever unless a look says that it is no value of the
    type any more. An added value is one, and is no reason for a copy. And guards changes that went
    past a table which was away: by its number in the publication."""
    with twin_maker(prepare=make_tables, tables=TABLES, environment=FAST_LOOKS) as world:
        world.start()
        world.settle()
        assert world.stop() == 0
        publication = f"{world.replicator.slot_name}_full"
        world.database.execute("CREATE TYPE shop.size AS ENUM ('a', 'b')")
        world.database.execute(
            "ALTER TABLE shop.renamed ADD e shop.size DEFAULT 'a'; INSERT INTO shop.renamed "
            "VALUES (100, 'new');"
            "ALTER TABLE shop.listed ADD e shop.size[]; INSERT INTO shop.listed VALUES (100, "
            "'new', 'calm', '{b,NULL,a}')"
        )
        world.database.execute("ALTER TYPE shop.size RENAME VALUE 'a' TO 'other'")
        world.database.execute(f"ALTER PUBLICATION {publication} DROP TABLE ONLY shop.returned")
        world.database.execute(
            "UPDATE shop.returned SET v = 'unseen'; INSERT INTO shop.returned VALUES (100)"
        )
        world.database.execute(f"ALTER PUBLICATION {publication} ADD TABLE ONLY shop.returned")
        world.start()
        world.until(lambda: reported(world, "renamed"), "the renamed value is reported")
        world.until(lambda: reported(world, "listed"), "so is it in a list")
        world.until(lambda: reported(world, "returned"), "that the table was away is reported")
        world.assert_equal("renamed", "returned")
        (listed,) = (r for r in world.target_rows("listed") if r["id"] == 100)
        assert listed["e"] == ["b", None, "other"]
        assert "without 'a'" in reported(world, "renamed")[0]
        assert "taken out of the source's stream" in reported(world, "returned")[0]

        # Live: values are added, before and after rows with them come.
        world.database.execute("ALTER TYPE shop.mood ADD VALUE 'busy' BEFORE 'calm'")
        world.database.execute("UPDATE shop.grown SET m = 'busy' WHERE id < 10")
        world.assert_equal("grown")
        looked = world.row("calm").schema
        world.until(lambda: "busy" in str(world.row("calm").schema), f"a look saw it: {looked}")
        world.database.execute("UPDATE shop.calm SET v = 'w'; UPDATE shop.grown SET v = 'w'")
        world.assert_equal("grown", "calm")
        for name in ("grown", "calm"):
            assert world.row(name).generation == 1, reported(world, name)
        assert world.stop() == 0
