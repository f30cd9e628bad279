"""Tables whose inserts are left out, over the whole path: real PostgreSQL, a real run, killed
between the target's commit and its record."""

from __future__ import annotations

import signal

import pytest

from tests.harness import World, differing, table_rows, until
from tests.model.reading import present
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900), pytest.mark.long]

CHOICES = {
    "kept": {"excluded": ["inserts"]},
    "softly": {"excluded": ["inserts"], "mode": "soft_delete"},
}


def make_tables(database: Database) -> None:
    database.execute("CREATE SCHEMA shop; CREATE SCHEMA first")
    for name in CHOICES:
        database.execute(
            f"CREATE TABLE shop.{name} (id int PRIMARY KEY, born text NOT NULL, v text, big text);"
            f"ALTER TABLE shop.{name} ALTER big SET STORAGE EXTERNAL;"
            f"INSERT INTO shop.{name} SELECT i, 'first', 'v', repeat(md5(i::text), 100)"
            " FROM generate_series(1, 200) i"
        )


def busy(database: Database, base: int) -> None:
    """Rows come, change, move, go, come again, and take each other's keys; `born` stays with a
    row."""
    for name in CHOICES:
        table = f"shop.{name}"
        new = (
            f"INSERT INTO {table} SELECT i, 'later', 'new', repeat('x', 4000) FROM generate_series"
        )
        database.execute(
            f"{new}({base}, {base + 20}) i;"
            f"UPDATE {table} SET v = 'changed {base}' WHERE id % 3 = 0;"
            f"DELETE FROM {table} WHERE id BETWEEN {base // 10} AND {base // 10 + 3};"
            f"{new}({base // 10}, {base // 10 + 1}) i;"
            f"UPDATE {table} SET id = {base // 10 + 2} WHERE id = {base + 1};"
            f"UPDATE {table} SET id = {base + 50}, v = 'moved' WHERE id = {base // 10 + 5};"
            f"UPDATE {table} SET id = {base // 10 + 5} WHERE id = {base + 2};"
            f"UPDATE {table} SET id = {base + 600} WHERE id = {base // 10 + 6};"
        )
        database.execute(f"UPDATE {table} SET v = 'again' WHERE id < {base // 10 + 8}")


def assert_kept(world: World) -> None:
    """The copies have the source's rows that were there first, and no others; with soft delete the
    gone ones flagged."""
    world.settle()
    for name in CHOICES:
        world.database.execute(
            f"CREATE OR REPLACE VIEW first.{name} AS SELECT * FROM shop.{name} WHERE born = 'first'"
        )
        with world.database.connect() as connection:
            expected = table_rows(connection, "first", name)
        found = world.target_rows(name)
        if name == "softly":
            assert {r["born"] for r in found} == {"first"}
            _, found = present(tuple(found[0]), found)
        reported = differing(expected, list(found))
        assert expected and not reported, (name, reported[:5])


def test_a_copy_without_inserts_keeps_up_the_rows_that_it_began_with(
    world_maker: MakeWorld,
) -> None:
    """Guards the whole way of leaving inserts out, on PostgreSQL's own messages (changed keys,
    values that were not sent), through a kill after the target's commit: a merge that only lacked
    its insert would hold later rows under keys of the first ones, and lose first ones that
    moved."""
    with world_maker(prepare=make_tables, tables=tuple(CHOICES), choices=CHOICES) as world:
        child = world.start()
        world.settle()
        busy(world.database, 1000)
        assert_kept(world)
        world.arm("target_merged")
        busy(world.database, 1100)
        until(child.is_dead, lambda: f"death\n{world.states()}\n{child.tail()}")
        assert child.wait() == -signal.SIGKILL, child.tail()
        child.end()
        world.disarm("target_merged")
        busy(world.database, 1200)
        world.start()
        assert_kept(world)
        assert world.row("kept").inserts == 0 < world.row("kept").updates
        gone = [r for r in world.target_rows("softly") if r["_is_deleted"]]
        assert len(gone) >= 12
        assert world.stop() == 0
