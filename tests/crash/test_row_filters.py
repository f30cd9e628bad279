"""Row filters from PostgreSQL into Iceberg: rows enter and leave while the run lives, and while it
is killed."""

from __future__ import annotations

import signal

import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from runners.tables.changes import table_change
from tests.harness import Traffic, World, differing, table_rows, until
from tests.world_fixtures import MakeWorld

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(900),
    pytest.mark.long,
    pytest.mark.oldest_postgresql(is_long=True),
]

CHOICES = {
    "items": {"filter": "n < 50 AND (ok = TRUE OR note LIKE 'u%') AND big NOT LIKE 'zz%'"},
    "pairs": {"filter": "part <> 3", "excluded": ["deletes"]},
    "views": {"filter": "n > 100"},
}
ITEMS = "n < 50 AND (ok OR note LIKE 'u%') AND big NOT LIKE 'zz%'"


def assert_same(world: World, items: str = ITEMS) -> None:
    """Settled, the copies of `items` and `views` hold the rows of the source that fit."""
    world.settle()
    for name, condition in (("items", items), ("views", "n > 100")):
        with world.database.connect() as connection:
            view = f"CREATE TEMP VIEW fitting AS SELECT * FROM shop.{name} WHERE {condition}"
            connection.execute(view.encode())
            fitting = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()"
            ).fetchone()
            assert fitting is not None
            rows = table_rows(connection, fitting[0], "fitting")
        reported = differing(rows, world.target_rows(name))
        assert not reported, (name, len(rows), reported[:5])


def test_the_copy_holds_the_rows_that_fit_whatever_happens(world_maker: MakeWorld) -> None:
    """Guards CORRECTNESS 20 on the whole way. Filtered in the snapshot only, rows that leave would
    stay; by the log's rows only, one that enters without its large value would lack it (it is read
    at the source, and so is one whose filter looks at a value that was not sent); and a kill
    between merge and record must not let a row be decided twice. A row of `pairs` whose delete is
    left out stays. A changed filter copies afresh."""
    with world_maker(choices=CHOICES) as world:
        traffic = Traffic(world.database)
        child = world.start()
        assert_same(world)
        parts = {r["part"] for r in world.target_rows("pairs")}
        assert parts == {0, 1, 2, 4, 5, 6, 7, 8, 9}
        with traffic.going_on():
            world.arm("target_merged")
            until(child.is_dead, lambda: f"death\n{world.states()}\n{child.tail()}")
        assert child.wait() == -signal.SIGKILL, child.tail()
        child.end()
        world.disarm("target_merged")
        world.database.execute("UPDATE shop.items SET n = 10 WHERE n BETWEEN 60 AND 62")
        world.database.execute("UPDATE shop.items SET ok = NOT ok WHERE n BETWEEN 20 AND 25")
        gone = world.database.execute(
            "DELETE FROM shop.pairs WHERE word = ANY(ARRAY['w7', 'w8']) AND part > 5 RETURNING "
            "word, part"
        )
        child = world.start()
        traffic.write(8)
        assert_same(world)
        kept = {(r["word"], r["part"]) for r in world.target_rows("pairs")}
        assert gone and set(gone) <= kept

        selection = TableSelection(TableId("shop", "items"), filter="n >= 50")
        table_change(
            is_assessed=False, replicator=world.replicator, selection=selection, actor=None
        )
        world.until(lambda: world.row("items").generation == 2, "copied afresh")
        traffic.write(5)
        assert_same(world, "n >= 50")
        assert not child.is_dead()
        assert world.stop() == 0
