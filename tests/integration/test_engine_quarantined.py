"""Values that the target can't hold: the table stops, or the rows wait beside it, by key, until
something fits."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from runners.services import table_replay
from tests.harness import World, until
from tests.quarantined import keys, waiting
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

TABLES = ("odd", "fine")


def make_tables(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA shop;"
        "CREATE TABLE shop.odd (id int PRIMARY KEY, at timestamptz, n numeric(10,2), v text, big "
        "text);"
        "ALTER TABLE shop.odd ALTER big SET STORAGE EXTERNAL;"
        "INSERT INTO shop.odd SELECT i, now(), i, 'v', repeat(md5(i::text), 100) FROM "
        "generate_series(1, 600) i;"
        "UPDATE shop.odd SET at = 'infinity' WHERE id = 100; UPDATE shop.odd SET n = 'NaN' WHERE "
        "id = 500;"
        "CREATE TABLE shop.fine (id int PRIMARY KEY, v text);"
        "INSERT INTO shop.fine SELECT i, 'v' FROM generate_series(1, 100) i"
    )


def write_fine(world: World, number: int) -> None:
    world.database.execute(f"INSERT INTO shop.fine VALUES ({number}, 'more')")


def target(world: World) -> dict[int, dict[str, Any]]:
    return {r["id"]: r for r in world.target_rows("odd")}


def source(world: World, *besides: int) -> dict[int, dict[str, Any]]:
    """The source's rows, with NULL for what the target can't hold."""
    left_out = ", ".join(map(str, (0, *besides)))
    world.database.execute(
        "CREATE OR REPLACE VIEW shop.rest AS SELECT id, CASE WHEN isfinite(at) THEN at END AS at,"
        f" NULLIF(n, 'NaN') AS n, v, big FROM shop.odd WHERE id NOT IN ({left_out})"
    )
    return {r["id"]: r for r in world.source_rows("rest")}


def test_rows_that_do_not_fit_wait_and_come_when_they_fit(twin_maker: MakeWorld) -> None:
    """Guards CORRECTNESS 30 from the source's log and first copy to the target, through a kill and
    a replay. Without the quarantine before the merge, a kill between both would lose the rows;
    merging a later change alone would fill it from another row."""
    with twin_maker(
        prepare=make_tables, tables=TABLES, options={"unsupported_values": "quarantine"}
    ) as world:
        child = world.start()
        world.assert_equal("fine")
        world.settle()
        assert waiting(world) == keys(100, 500)
        assert world.row("odd").rows_quarantined == 2
        assert target(world) == source(world, 100, 500)
        before = target(world)

        world.arm("rows_quarantined")
        world.database.execute(
            "UPDATE shop.odd SET at = '-infinity', v = 'held' WHERE id IN (7, 8, 9);"
            "UPDATE shop.odd SET v = 'goes on' WHERE id = 10"
        )
        until(child.is_dead, "death at rows_quarantined")
        assert child.wait() == -signal.SIGKILL
        child.end()
        # The merge that comes instead of the one that was cut off may reach further: one of the
        # rows fits by then.
        world.database.execute(
            "UPDATE shop.odd SET v = 'held too' WHERE id = 8; UPDATE shop.odd SET at = "
            "'2024-02-02Z' WHERE id = 9"
        )
        write_fine(world, 1001)
        world.start()
        world.assert_equal("fine")
        world.settle()
        assert waiting(world) == keys(7, 8, 100, 500)
        held = target(world)
        assert {i: held[i] for i in (7, 8)} == {i: before[i] for i in (7, 8)}
        rest = source(world, 7, 8, 100, 500)
        assert {i: held[i] for i in rest} == rest

        world.database.execute(
            "UPDATE shop.odd SET at = '2024-01-01Z' WHERE id IN (7, 100); DELETE FROM shop.odd "
            "WHERE id = 10"
        )
        world.settle()
        assert waiting(world) == keys(8, 500)
        assert {i: r for i, r in target(world).items() if i != 8} == source(world, 8, 500)

        table_replay(replicator=world.replicator, schema="shop", name="odd", actor=None)
        world.until(lambda: not world.row("odd").is_replay_asked, "the replay is done")
        world.settle()
        assert not waiting(world)
        assert world.row("odd").rows_quarantined == 0
        assert target(world) == source(world)
        world.assert_equal("fine")
        assert world.stop() == 0


@pytest.mark.long
def test_a_table_stops_at_a_value_that_does_not_fit_unless_it_is_told_to_quarantine(
    world_maker: MakeWorld,
) -> None:
    """Guards the default of the policy: writing NULL in its place unasked would be a silent loss;
    and a re-sync after the choice has changed brings the table back."""

    def prepare(database: Database) -> None:
        make_tables(database)
        database.execute("DELETE FROM shop.odd WHERE id IN (100, 500)")

    with world_maker(prepare=prepare, tables=TABLES) as world:
        world.start()
        world.settle()
        world.database.execute("UPDATE shop.odd SET at = 'infinity', v = 'no' WHERE id = 5")
        world.until_states("failing source:value-unsupported", "odd")
        assert world.row("odd").error_facts["column"] == "at"
        assert target(world)[5]["v"] == "v"
        write_fine(world, 1001)
        world.assert_equal("fine")

        copies = world.row("odd").generation
        world.resync("odd")
        world.until(lambda: world.row("odd").generation > copies, "it is copied again")
        world.until_states("failing source:value-unsupported", "odd")
        assert len(target(world)) == 598, "a re-sync that failed took the old rows away"
        world.replicator.options["unsupported_values"] = "quarantine"
        world.replicator.save(update_fields=["options"])
        world.resync("odd")
        world.settle()
        assert waiting(world) == keys(5)
        assert target(world) == source(world, 5)
        assert world.stop() == 0


@pytest.mark.long
def test_a_value_that_fits_after_its_column_got_another_type_comes_by_itself(
    world_maker: MakeWorld,
) -> None:
    """Guards that a row need not be replayed with NULL to come: what makes its value fit is a
    change of the source, and that either comes by the log or has the table copied afresh, with
    nothing waiting from before."""
    with world_maker(
        prepare=make_tables, tables=TABLES, options={"unsupported_values": "quarantine"}
    ) as world:
        world.start()
        world.settle()
        assert waiting(world) == keys(100, 500)
        world.database.execute("ALTER TABLE shop.odd ALTER at TYPE text")
        world.database.execute("UPDATE shop.odd SET v = 'after' WHERE id = 7")
        world.until(lambda: waiting(world) == keys(500), "only the number waits", 120)
        world.until(lambda: target(world).get(100, {}).get("at") == "infinity", "it has come")
        assert 500 not in target(world)
        assert world.stop() == 0
