"""Rows that another tool damaged in the target are repaired while the source changes: with a kill
within the repair, and once into each kind of target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from demo.postgres import EmbeddedPostgres
from runners.states import RepairState
from runners.verifications import Repair
from tests.crash.test_failpoints import died_at
from tests.harness import Traffic, World
from tests.lake_sql import lake_sql
from tests.local.world import DuckCopies
from tests.mysql_world import SHOP_TABLES as MYSQL_TABLES
from tests.mysql_world import MysqlTraffic, MysqlWorld, make_shop
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]
IDS = range(2001, 2041)
PATIENT = {"REPLICATOR_LEASE_SECONDS": "120"}


def ask(world: World, name: str, keys: list[dict[str, Any]]) -> Repair:
    """A person asks for these rows."""
    return Repair.objects.create(
        replicator=world.replicator,
        table=world.row(name),
        keys=[[[column, value] for column, value in key.items()] for key in keys],
    )


def ask_all(world: World) -> list[Repair]:
    """Items by number; pairs by a text and a number."""
    items = [{"id": n} for n in (*IDS, 99_999_999)]
    pairs = [{"word": f"w{n // 10}", "part": n % 10} for n in IDS]
    return [ask(world, "items", items), ask(world, "pairs", pairs)]


def done(world: World, repairs: list[Repair]) -> list[Repair]:
    """The repairs, once they have ended."""
    numbers = [r.pk for r in repairs]

    def ended() -> bool:
        return not Repair.objects.filter(pk__in=numbers, state=RepairState.ASKED).exists()

    world.until(ended, "the repairs have ended")
    found = list(Repair.objects.filter(pk__in=numbers).order_by("pk"))
    assert all(r.state == RepairState.DONE for r in found), [r.error_code for r in found]
    return found


def statements(schema: str) -> list[str]:
    """What another tool does: it changes rows, removes some, and adds one."""
    return [
        f"UPDATE {schema}.items SET note = 'by hand' WHERE id BETWEEN 2001 AND 2010",
        f"DELETE FROM {schema}.items WHERE id BETWEEN 2011 AND 2015",
        f"INSERT INTO {schema}.items (id, note) VALUES (99999999, 'by hand')",
        f"DELETE FROM {schema}.pairs WHERE word = 'w202'",
        f"UPDATE {schema}.pairs SET big = 'by hand' WHERE word = 'w203'",
    ]


class Duck(DuckCopies):
    """Into DuckDB, without a JVM."""

    def damage(self) -> None:
        with self.client.opened() as db:
            for text in statements(self.schema):
                db.execute(text)


class OnPostgres(PostgresTargetWorld):
    """Into PostgreSQL, without a JVM."""

    def damage(self) -> None:
        for text in statements(self.schema):
            self.there.execute(text)


class OnSpark(World):
    """Into Iceberg, as the product runs."""

    def damage(self) -> None:
        lake_sql(self.target_params()[1], *statements("lake.shop"))


def test_a_repair_that_is_killed_is_repeated(world_maker: MakeWorld) -> None:
    """Guards the order of a repair's writes in a real process: the rows are written in one commit
    and the request ends after it, so a kill between them repeats the repair, and nothing is lost or
    doubled."""
    with world_maker(kind=Duck, tables=("items", "pairs"), environment=PATIENT) as world:
        traffic = Traffic(world.database, seed=41)
        world.start()
        world.settle()
        world.damage()
        assert world.differences("items") and world.differences("pairs")
        world.arm("repair_merged")
        child = world.child
        assert child is not None
        with traffic.going_on():
            repairs = ask_all(world)
            died_at(world, child, "repair_merged")
        assert Repair.objects.filter(state=RepairState.ASKED).exists()
        world.start()
        with traffic.going_on():
            items, pairs = done(world, repairs)
        world.assert_equal()
        assert items.rows_written + items.rows_equal > 10 and pairs.rows_equal
        assert world.stop() == 0


@contextmanager
def postgres_world(world_maker: MakeWorld, postgres: EmbeddedPostgres) -> Iterator[World]:
    with (
        fresh_database(postgres) as copies,
        world_maker(kind=OnPostgres, copies=copies, environment=PATIENT) as world,
    ):
        yield world


def repaired(world: World) -> None:
    """Damage, ask and compare, while the source changes."""
    world.start()
    world.settle()
    world.damage()  # type: ignore[attr-defined]
    assert world.differences("items") and world.differences("pairs")
    with Traffic(world.database, seed=42).going_on():
        found = done(world, ask_all(world))
    world.assert_equal()
    assert [r.rows_deleted for r in found] == [1, 0]
    assert found[0].rows_written >= 10 and found[0].rows_equal >= 5
    assert all(n == sorted(n) for n in [world.tokens("items")])
    assert world.stop() == 0


@pytest.mark.long
def test_rows_are_repaired_in_postgresql(
    world_maker: MakeWorld, postgres: EmbeddedPostgres
) -> None:
    """Guards the reader of PostgreSQL's tables and the merge of a repair there: unsent values and
    changed keys come from the log meanwhile."""
    with postgres_world(world_maker, postgres) as world:
        repaired(world)


@pytest.mark.long  # `make test` repairs without a JVM
def test_rows_are_repaired_in_iceberg(world_maker: MakeWorld) -> None:
    """Guards the same in the product as it runs, where a commit of another tool has no
    token."""
    with world_maker(kind=OnSpark, tables=("items", "pairs")) as world:
        repaired(world)


class FromMysql(DuckCopies, MysqlWorld):
    """From MariaDB or MySQL into DuckDB, without a JVM."""

    def damage(self) -> None:
        table = f'"{self.schema}"'
        with self.client.opened() as db:
            db.execute(f"UPDATE {table}.items SET note = 'by hand' WHERE id BETWEEN 1001 AND 1010")
            db.execute(f"DELETE FROM {table}.items WHERE id BETWEEN 1011 AND 1015")
            db.execute(f"INSERT INTO {table}.items (id) VALUES (99999999)")
            db.execute(f"DELETE FROM {table}.pairs WHERE word = 'w102'")


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
@pytest.mark.long
def test_rows_are_repaired_from_mysql(
    request: pytest.FixtureRequest, world_maker: MakeWorld, flavour: str
) -> None:
    """Guards the reader of rows by key there: its position in the order of the stream, and the wait
    for what the log has and a query does not show yet."""
    server = request.getfixturevalue(flavour)
    with world_maker(
        kind=FromMysql, server=server, prepare=make_shop, tables=MYSQL_TABLES, environment=PATIENT
    ) as world:
        assert isinstance(world, FromMysql)
        world.start()
        world.settle()
        world.damage()
        assert world.differences("items") and world.differences("pairs")
        traffic = MysqlTraffic(world.database, seed=43)
        items = [{"id": n} for n in (*range(1001, 1031), 99_999_999)]
        pairs = [{"word": f"w{n // 10}", "part": n % 10} for n in range(1015, 1035)]
        repairs = [ask(world, "items", items), ask(world, "pairs", pairs)]
        numbers = [r.pk for r in repairs]
        while Repair.objects.filter(pk__in=numbers, state=RepairState.ASKED).exists():
            traffic.write(1)
            world.until(lambda: True, "the run lives")
        found = done(world, repairs)
        world.assert_equal()
        assert [r.rows_deleted for r in found] == [1, 0]
        assert found[0].rows_written >= 10 and found[1].rows_written >= 5
        assert world.stop() == 0
