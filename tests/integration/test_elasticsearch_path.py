"""The whole path from MariaDB into a search index: snapshot, changes, a SIGKILL, a TRUNCATE and a
fresh copy. The index has exactly the source's rows."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

import pytest

from tests.harness import until
from tests.mysql_servers import SqlDatabase, SqlServer
from tests.mysql_world import MysqlWorld
from tests.search_server import SearchServer
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]
VEHICLES = (
    "CREATE TABLE vehicles (id char(36) PRIMARY KEY, type text, status varchar(20),"
    " price decimal(9,2))",
    "INSERT INTO vehicles SELECT uuid(), concat('Vehicle ', seq), 'available', seq / 4"
    " FROM seq_1_to_3000",
)


def make_vehicles(database: SqlDatabase) -> None:
    """The table of seed 003, with a price."""
    database.execute(*VEHICLES)


class SearchWorld(MysqlWorld):
    """On Spark. `target` has the server's address."""

    def target_params(self) -> tuple[str, dict[str, Any]]:
        index = f"w{self.folder.name.replace('_', '-')}-{{table}}".lower()
        return "elasticsearch", {"replicas": 0, "index": index, **self.target}

    @property
    def alias(self) -> str:
        """Where people search the vehicles."""
        return str(self.target_params()[1]["index"]).format(table="vehicles")


class LocalSearchWorld(SearchWorld):
    """Its run needs no JVM."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")


def found(server: SearchServer, alias: str) -> dict[str, tuple[Any, ...]]:
    """The documents, by id."""
    if "error" in server.ask("POST", f"/{alias}/_refresh", must=False):
        return {}
    hits = server.ask("POST", f"/{alias}/_search", {"size": 10_000})["hits"]["hits"]
    rows = [h["_source"] for h in hits]
    return {r["id"]: (r["type"], r["status"], round(float(r["price"]) * 100)) for r in rows}


def indexes(server: SearchServer, alias: str) -> list[str]:
    """The names of the indexes of a table."""
    return list(server.ask("GET", f"/{alias}*"))


def source(world: SearchWorld) -> dict[str, tuple[Any, ...]]:
    """The source's rows, by id."""
    rows = world.database.execute("SELECT id, type, status, price FROM vehicles")
    return {r[0]: (r[1], r[2], round(r[3] * 100)) for r in rows}


@pytest.mark.parametrize(
    "kind",
    [LocalSearchWorld, pytest.param(SearchWorld, marks=pytest.mark.long)],
    ids=["local", "spark"],
)
def test_an_index_has_the_rows_of_the_source_over_a_kill_and_a_fresh_copy(
    world_maker: MakeWorld,
    mariadb: SqlServer,
    search_server: SearchServer,
    kind: type[SearchWorld],
) -> None:
    """Guards the target over the whole path."""
    values: dict[str, Any] = {"kind": kind, "target": {"address": search_server.url}}
    with world_maker(
        server=mariadb, prepare=make_vehicles, tables=("vehicles",), **values
    ) as world:
        assert isinstance(world, SearchWorld)

        def is_equal() -> bool:
            return found(search_server, world.alias) == source(world)

        def settled() -> None:
            world.settle("vehicles")
            until(is_equal, "the index has the rows of the source", 60)

        world.start()
        settled()
        tank = str(uuid.uuid4())
        run = world.database.execute
        run(f"INSERT INTO vehicles VALUES ('{tank}', '1980s military tank', 'available', 1.25)")
        run("UPDATE vehicles SET status = 'in_use' WHERE price < 100")
        world.kill()
        run("DELETE FROM vehicles WHERE price > 700")
        run(f"UPDATE vehicles SET status = 'gone' WHERE id = '{tank}'")
        world.start()
        settled()
        assert found(search_server, world.alias)[tank][1] == "gone"
        run("TRUNCATE vehicles")
        run(f"INSERT INTO vehicles VALUES ('{tank}', 'back', 'available', 2)")
        settled()
        world.resync("vehicles")
        fresh = [f"{world.alias}-g2"]
        until(lambda: indexes(search_server, world.alias) == fresh, "the fresh copy is there", 60)
        settled()
        assert world.stop() == 0
