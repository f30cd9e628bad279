"""The whole path into MariaDB and MySQL: from PostgreSQL and from MariaDB, over kills, changes of
columns and fresh copies. The runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import FILL_ITEMS, Traffic
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database
from tests.mysql_target_world import MysqlTargetWorld, MysqlToMysqlWorld
from tests.mysql_world import SHOP_TABLES as MYSQL_TABLES
from tests.mysql_world import MysqlTraffic
from tests.mysql_world import make_shop as make_mysql_shop
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture
def copies(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """The target's database, on the server of this name."""
    with fresh_sql_database(request.getfixturevalue(str(request.param))) as made:
        yield made


@pytest.mark.parametrize(
    "copies", [pytest.param("mariadb", marks=pytest.mark.long), "mysql"], indirect=True
)
def test_changes_of_postgresql_lead_to_its_rows(
    world_maker: MakeWorld, copies: SqlDatabase
) -> None:
    """Guards the target over the whole path: types, composite keys, no key, unsent values, changed
    keys, a new column, a TRUNCATE and a fresh copy, with a SIGKILL while batches are merged.
    Nothing of ours is left but the progress table."""
    with world_maker(kind=MysqlTargetWorld, copies=copies) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(30)
        world.assert_equal()

        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        world.start()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_040})
        world.database.execute("UPDATE shop.items SET extra = 7 WHERE id >= 5000010")
        world.database.execute("ALTER TABLE shop.items ALTER COLUMN n TYPE bigint")
        traffic.write(10)
        world.assert_equal()
        assert [r["extra"] for r in world.target_rows("items")].count(7) >= 31

        world.database.execute("TRUNCATE shop.pairs")
        world.resync("views")
        traffic.write(5)
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("items") == set()


@pytest.mark.parametrize("copies", ["mariadb", "mysql"], indirect=True)
@pytest.mark.long
def test_changes_of_mariadb_lead_to_its_rows(
    world_maker: MakeWorld, mariadb: SqlServer, copies: SqlDatabase
) -> None:
    """Guards two servers of one kind: every type of the shop, changed keys, a NUL character, and a
    removed table that is dropped with its data."""
    with world_maker(
        server=mariadb,
        prepare=make_mysql_shop,
        tables=MYSQL_TABLES,
        kind=MysqlToMysqlWorld,
        copies=copies,
    ) as world:
        traffic = MysqlTraffic(world.database)  # type: ignore[arg-type]
        world.start()
        world.until_states("replicating")
        traffic.write(60)
        world.kill()
        world.start()
        traffic.write(20)
        (last,) = max(world.database.execute("SELECT max(id) FROM items"))
        world.database.execute(f"UPDATE items SET note = 'a\\0b' WHERE id = {last}")
        world.assert_equal()
        world.remove("pairs", keep_target=False)
        world.until(lambda: not world.has_target("pairs"), "the copy is gone")
        assert world.stop() == 0
