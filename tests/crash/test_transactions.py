"""Transactions cut by kills, and changes that depend on what came before them, across restarts."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from runners.models import Segment
from tests.harness import FILL_ITEMS, FILL_VIEWS, World, until
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(900),
    pytest.mark.oldest_postgresql(is_long=True),
]

ROWS = 420_000
MANY = 2_000_000
RUN_BYTES = 3 << 30  # of the run's own Python; a transaction that is held in memory goes beyond


def make_bulk(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.bulk (id bigint PRIMARY KEY, v int, w text);"
        "INSERT INTO shop.bulk SELECT -i, i, 'old' FROM generate_series(1, 1000) i"
    )


def one_large_transaction(database: Database, rows: int = ROWS) -> None:
    """Inserts, updates, changes of keys and deletes: more rows than one task folds."""
    with database.connect() as connection, connection.transaction():
        connection.execute(
            "INSERT INTO shop.bulk SELECT i, i %% 7, 'n' || i FROM generate_series(1, %s) i", [rows]
        )
        connection.execute("UPDATE shop.bulk SET v = v + 1 WHERE id BETWEEN 1000 AND 9000")
        connection.execute("UPDATE shop.bulk SET id = id + 10000000 WHERE id BETWEEN 500 AND 1500")
        connection.execute("UPDATE shop.bulk SET id = -id - 5000 WHERE id < 0 AND id >= -500")
        connection.execute("DELETE FROM shop.bulk WHERE id BETWEEN 20000 AND 22000 OR id = -777")


def test_a_large_transaction_cut_by_a_kill_comes_again_whole_and_is_merged_in_one_commit(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 1, 3, 4 and 8. Keeping the segments of the open transaction would double
    it, reusing their numbers would put it below the merged sequence, merging by segment would show
    half of it to readers; folding a key's rows in two tasks, or a moved key without its delete
    half, would leave rows over."""
    small = {"REPLICATOR_SEAL_BYTES": str(1 << 20)}
    with twin_maker(prepare=make_bulk, tables=("bulk",), environment=small) as world:
        child = world.start()
        world.assert_equal()
        known, before = set(world.tokens("bulk")), world.last_segment()
        world.arm("segment_recorded")
        one_large_transaction(world.database)
        until(child.is_dead, lambda: f"death within the transaction\n{child.tail()}", 300)
        assert child.wait() == -signal.SIGKILL
        child.end()
        left = Segment.objects.filter(replicator=world.replicator, number__gt=before)
        cut = {s.number for s in left if not s.is_closed}
        assert cut, "the transaction was not cut"

        world.start()
        world.assert_equal()
        numbers = set(
            Segment.objects.filter(replicator=world.replicator, number__gt=before).values_list(
                "number", flat=True
            )
        )
        assert not numbers & cut, "a number was used twice"
        assert len(numbers) > 3, "the transaction did not span segments"
        assert len(set(world.tokens("bulk")) - known) == 1, world.tokens("bulk")
        assert world.stop() == 0


def figures(rows: list[dict[str, Any]]) -> tuple[int, int, int, int]:
    """Count, and sums over every column, by which copies of this table are compared: a row more,
    less or changed alters them."""
    kinds = sum(crc32(r["w"].encode()) for r in rows)
    return len(rows), sum(r["id"] for r in rows), sum(r["id"] * r["v"] for r in rows), kinds


@pytest.mark.long
def test_two_million_rows_in_one_transaction_are_one_commit_and_are_never_held_in_memory(
    world_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 1 and 3 at size. A transaction gathered before it is decoded or merged
    would need its size in memory."""
    with world_maker(prepare=make_bulk, tables=("bulk",)) as world:
        child = world.start()
        world.assert_equal()
        known = set(world.tokens("bulk"))
        one_large_transaction(world.database, MANY)
        world.settle(seconds=600)
        assert figures(world.target_rows("bulk")) == figures(world.source_rows("bulk"))
        assert len(set(world.tokens("bulk")) - known) == 1
        status = Path(f"/proc/{child.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) << 10
        assert peak < RUN_BYTES, f"{peak >> 20} MiB"
        assert world.stop() == 0


def hostile_changes(world: World, round_: int) -> None:
    """Changes whose outcome depends on rows that are not in the same batch."""
    base = 100 * round_
    with world.database.connect() as c:
        c.execute("UPDATE shop.items SET n = -1 WHERE id BETWEEN %s AND %s", [base, base + 50])
        c.execute("UPDATE shop.items SET id = -id WHERE id BETWEEN %s AND %s", [base, base + 20])
        c.execute("UPDATE shop.items SET id = id * 1000, note = 'chain' WHERE id < 0 AND id > -999")
        c.execute("DELETE FROM shop.items WHERE id = %s", [base + 30])
        c.execute(FILL_ITEMS, {"first": base + 30, "last": base + 30})
        with c.transaction():
            c.execute("UPDATE shop.pairs SET part = part + 100 WHERE word = %s", [f"w{round_}"])
            c.execute("UPDATE shop.pairs SET word = 'x' || word, v = 'moved' WHERE part > 100")
            c.execute("DELETE FROM shop.pairs WHERE word LIKE 'xw%%' AND part %% 2 = 0", [])
        with c.transaction():
            for old, new in ((3, 1003), (4, 3), (1003, 4)):
                swap = "UPDATE shop.pairs SET part = %s WHERE word = 'w200' AND part = %s"
                c.execute(swap, [new, old])
        if round_ % 2:
            with c.transaction():
                c.execute(FILL_VIEWS, {"first": 1, "last": 50})
                c.execute("TRUNCATE shop.views")
                c.execute(FILL_VIEWS, {"first": 1, "last": 70})


def test_changes_that_lean_on_earlier_ones_are_right_across_restarts(
    twin_maker: MakeWorld,
) -> None:
    """Guards CORRECTNESS 6, 8 and 9 over `pairs` (composite text key), `items` (TOAST) and `views`
    (no key): an unsent column taken as NULL, or from the new key's row, differs in `big`; a moved
    key without its delete is left over; a truncate that is not a barrier leaves or loses rows of
    `views`."""
    with twin_maker() as world:
        world.start()
        world.settle()
        hostile_changes(world, 1)
        world.assert_equal()
        hostile_changes(world, 2)
        world.kill()
        hostile_changes(world, 3)

        world.start()
        world.settle()
        hostile_changes(world, 4)
        assert world.stop() == 0
        assert not set(world.states().values()) - {"replicating"}
        hostile_changes(world, 5)

        world.start()
        world.assert_equal()
        assert world.stop() == 0
