"""Rows that are larger than the path can hold: their table stops or they wait, by copy and by log;
the run and the others go on."""

from __future__ import annotations

from typing import Any

import pytest

from runners.engine.sizes import CODE
from runners.models import Run
from tests.harness import World
from tests.local.world import local_twin
from tests.mysql_world import MysqlWorld
from tests.quarantined import keys, waiting
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

TABLES = ("odd", "stops", "fine")
CHOICES = {"odd": {"unsupported": "quarantine"}}
LARGE = 2_000_000
SMALL_LIMIT = {"REPLICATOR_ROW_LIMIT_BYTES": "1M"}


def execute(world: World, *statements: str) -> None:
    """In the schema of the tables; of another database than PostgreSQL that is the session's."""
    for statement in statements:
        world.database.execute(
            statement.replace("shop.", "") if world.kind == "mysql" else statement
        )


def make_tables(database: Any) -> None:
    is_postgres = hasattr(database, "dsn")
    text, prefix = ("text", "shop.") if is_postgres else ("longtext", "")
    if is_postgres:
        database.execute("CREATE SCHEMA shop")
    for name in TABLES:
        database.execute(f"CREATE TABLE {prefix}{name} (id int PRIMARY KEY, n int, v {text})")
        values = ", ".join(f"({i}, {i}, 'v')" for i in range(1, 201))
        database.execute(f"INSERT INTO {prefix}{name} VALUES {values}")
    database.execute(f"UPDATE {prefix}odd SET v = repeat('é', {LARGE // 2}) WHERE id = 100")


def sizes(world: World, name: str) -> dict[int, tuple[int, int]]:
    return {r["id"]: (r["n"], len(r["v"])) for r in world.target_rows(name)}


@pytest.mark.parametrize(
    ("server", "kind", "form"),
    [
        pytest.param("postgres", World, "delta", marks=pytest.mark.long),
        ("mariadb", local_twin(MysqlWorld), "iceberg"),
        pytest.param("mariadb", MysqlWorld, "iceberg", marks=pytest.mark.long),
        pytest.param("mysql", MysqlWorld, "iceberg", marks=pytest.mark.long),
    ],
    ids=["postgres", "mariadb, local", "mariadb", "mysql"],
)
def test_a_row_that_is_too_large_stops_its_table_or_waits_and_the_others_go_on(
    request: pytest.FixtureRequest,
    world_maker: MakeWorld,
    server: str,
    kind: type[World],
    form: str,
) -> None:
    """Guards `sizes`: Spark's JVM, which holds each value many times, would end with the whole run,
    again and again, and the deletion of the row at the source would not help. From PostgreSQL it is
    also the whole path into Delta."""
    with world_maker(
        server=request.getfixturevalue(server), kind=kind, prepare=make_tables, tables=TABLES,
        choices=CHOICES, environment=SMALL_LIMIT, format=form,
    ) as world:  # fmt: skip
        world.start()
        world.settle()
        assert waiting(world) == keys(100)
        assert len(sizes(world, "odd")) == 199

        execute(
            world,
            f"UPDATE shop.odd SET v = repeat('x', {LARGE}) WHERE id IN (7, 8)",
            "UPDATE shop.odd SET v = 'small again' WHERE id = 100",
            f"INSERT INTO shop.stops VALUES (1000, 0, repeat('x', {LARGE}))",
            "INSERT INTO shop.fine VALUES (1000, 0, 'more')",
        )
        world.until_states(f"failing {CODE}", "stops")
        facts = world.row("stops").error_facts
        assert facts["column"] == "v"
        assert (
            facts["reason"]
            == "its row has 2,000,000 bytes, and rows of at most 1,048,576 are copied"
        )
        world.settle("odd", "fine")
        assert waiting(world) == keys(7, 8)
        assert sizes(world, "odd") == {i: (i, 11 if i == 100 else 1) for i in range(1, 201)}
        assert sizes(world, "fine")[1000] == (0, 4)

        execute(
            world,
            "DELETE FROM shop.odd WHERE id = 7",
            "UPDATE shop.odd SET n = 0, v = 'fits' WHERE id = 8",
            "DELETE FROM shop.stops WHERE id = 1000",
        )
        world.resync("stops")
        world.settle()
        assert not waiting(world)
        assert sizes(world, "odd")[8] == (0, 4) and 7 not in sizes(world, "odd")
        assert len(sizes(world, "stops")) == 200
        assert Run.objects.filter(replicator=world.replicator).count() == 1
        assert world.stop() == 0


@pytest.mark.long
@pytest.mark.parametrize("server", ["postgres", "mariadb"])
def test_a_value_of_400_megabytes_does_not_end_the_run(
    request: pytest.FixtureRequest, world_maker: MakeWorld, server: str
) -> None:
    """The default limit, and all that comes before the check: the stream, the segment, the
    decoder."""
    kind = World if server == "postgres" else MysqlWorld
    if server != "postgres":
        request.getfixturevalue(server).execute("SET GLOBAL max_allowed_packet = 1073741824")
    with world_maker(
        server=request.getfixturevalue(server), kind=kind, prepare=make_tables, tables=TABLES,
        choices=CHOICES,
    ) as world:  # fmt: skip
        world.start()
        world.settle()
        for name in ("odd", "stops"):
            execute(world, f"UPDATE shop.{name} SET v = repeat('x', 400000000) WHERE id = 1")
        world.until_states(f"failing {CODE}", "stops")
        world.settle("odd", "fine")
        assert waiting(world) == keys(1)
        world.resync("stops")
        world.until(lambda: world.row("stops").generation > 1, "it is copied again")
        world.until_states(f"failing {CODE}", "stops")
        execute(world, "DELETE FROM shop.odd WHERE id = 1", "DELETE FROM shop.stops WHERE id = 1")
        world.resync("stops")
        world.settle()
        assert not waiting(world)
        assert len(sizes(world, "stops")) == 199
        assert world.stop() == 0
