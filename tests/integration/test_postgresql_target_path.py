"""The whole path into PostgreSQL: from MariaDB and from PostgreSQL, over kills, changes of columns
and fresh copies. The runs need no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from demo.postgres import EmbeddedPostgres
from tests.harness import FILL_ITEMS, Traffic, table_rows
from tests.mysql_servers import SqlServer
from tests.mysql_world import SHOP_TABLES as MYSQL_TABLES
from tests.mysql_world import MysqlTraffic
from tests.mysql_world import make_shop as make_mysql_shop
from tests.postgres_target_world import MysqlToPostgresWorld, PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture
def copies(postgres: EmbeddedPostgres) -> Iterator[Database]:
    """The target's database."""
    with fresh_database(postgres) as made:
        yield made


@pytest.mark.long
def test_changes_of_postgresql_lead_to_its_rows(world_maker: MakeWorld, copies: Database) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column, a TRUNCATE and a fresh copy, with a SIGKILL while batches are
    merged. Nothing of ours is left but the progress table."""
    with world_maker(kind=PostgresTargetWorld, copies=copies) as world:
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


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])


@pytest.mark.long
@pytest.mark.parametrize("mode", ["soft_delete", "history"])
def test_a_view_of_the_living_rows_equals_the_source(
    world_maker: MakeWorld, copies: Database, mode: str
) -> None:
    """Guards the views over the whole path: deletes, a SIGKILL, new, renamed and dropped columns, a
    fresh copy, and the end of the table with its data."""
    views = {"current_views": True}
    with world_maker(
        kind=PostgresTargetWorld,
        copies=copies,
        tables=("items", "pairs"),
        options={"mode": mode},
        target=views,
    ) as world:
        source = world.database

        def is_equal() -> bool:
            shown = copies.execute("SELECT to_regclass('shop.items_current') IS NOT NULL")
            if shown != [(True,)]:
                return False
            with source.connect() as here, copies.connect() as there:
                wanted = sorted(table_rows(here, "shop", "items"), key=_id)
                return sorted(table_rows(there, "shop", "items_current"), key=_id) == wanted

        traffic = Traffic(source)
        world.start()
        world.until(is_equal, "the view shows the first copy")
        traffic.write(30)
        source.execute("DELETE FROM shop.items WHERE id % 3 = 0")
        world.kill()
        world.start()
        world.until(is_equal, "the view lacks the deleted rows")
        source.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        source.execute("UPDATE shop.items SET extra = 7 WHERE id % 3 = 1")
        world.until(is_equal, "the view has the new column")
        source.execute("ALTER TABLE shop.items RENAME COLUMN extra TO further")
        source.execute("UPDATE shop.items SET further = 8 WHERE id % 3 = 1")
        world.until(is_equal, "the view has the column's new name")
        source.execute("ALTER TABLE shop.items DROP COLUMN further")
        source.execute("DELETE FROM shop.items WHERE id % 5 = 0")
        world.until(is_equal, "the view lacks the column")
        world.resync("items")
        traffic.write(5)
        world.until(is_equal, "the view shows the fresh copy")
        world.remove("items", keep_target=False)
        world.until(lambda: not world.has_target("items_current"), "the view is gone")
        assert not world.has_target("items")
        assert world.stop() == 0


def test_changes_of_mariadb_lead_to_its_rows(
    world_maker: MakeWorld, mariadb: SqlServer, copies: Database
) -> None:
    """Guards the target behind another kind of log: every type of its own, changed keys, a text
    with a NUL character, whose row waits in quarantine, and a removed table that is dropped with
    its data."""
    with world_maker(
        server=mariadb,
        prepare=make_mysql_shop,
        tables=MYSQL_TABLES,
        kind=MysqlToPostgresWorld,
        copies=copies,
        options={"unsupported_values": "quarantine"},
    ) as world:
        traffic = MysqlTraffic(world.database)  # type: ignore[arg-type]
        world.start()
        world.until_states("replicating")
        traffic.write(60)
        world.kill()
        world.start()
        traffic.write(20)
        world.assert_equal()
        (last,) = max(world.database.execute("SELECT max(id) FROM items"))
        world.database.execute(f"UPDATE items SET note = 'a\\0b' WHERE id = {last}")
        world.until(lambda: world.row("items").rows_quarantined == 1, "the row waits")
        world.database.execute(f"UPDATE items SET note = 'ab' WHERE id = {last}")
        world.assert_equal()
        assert world.row("items").rows_quarantined == 0
        world.remove("pairs", keep_target=False)
        world.until(lambda: not world.has_target("pairs"), "the copy is gone")
        assert world.stop() == 0
