"""A run that is killed within a snapshot: keyed tables go on where they were, keyless ones begin
again, and all are equal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from demo.postgres import EmbeddedPostgres
from runners.engine.store.copies import CopyChunk
from runners.models import SnapshotChunk
from tests.crash.test_failpoints import died_at
from tests.harness import Traffic, World, make_shop
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]
ROWS = 6000

# While the run is down: every kind of change, also of rows that were copied into a chunk that is
# done, and of keys that are used again. `big` is not sent by an update that leaves it alone.
TROUBLE = (
    "UPDATE shop.items SET n = n + 1 WHERE id % 3 = 0",
    "DELETE FROM shop.items WHERE id % 50 = 7",
    "UPDATE shop.items SET id = id + 20000000, note = 'far' WHERE id % 40 = 1",
    "INSERT INTO shop.items (id, big) SELECT id - 20000000, 'instead' FROM shop.items"
    " WHERE id > 20000000 AND id % 80 = 1",
    "UPDATE shop.items SET id = -id WHERE id BETWEEN 100 AND 110",
    "UPDATE shop.items SET id = 210 + id WHERE id BETWEEN -110 AND -100",
    "UPDATE shop.items SET note = 'again' WHERE id % 3 = 0",
    "UPDATE shop.pairs SET part = part + 100 WHERE part = 3",
    "UPDATE shop.pairs SET v = 'seen' WHERE word < 'w3'",
    "DELETE FROM shop.pairs WHERE part = 103 AND word > 'w5'",
    "INSERT INTO shop.views (n, page) VALUES (-1, 'while it was down')",
)


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(fsync=False, options={"log_statement": "all"}) as made:
        yield made


def done_chunks() -> list[CopyChunk]:
    return [
        CopyChunk(c.number, c.spec, c.rows_estimated, c.path, c.rows, c.is_done)
        for c in SnapshotChunk.objects.filter(is_done=True)
    ]


def kill_in_the_middle(world: World) -> list[CopyChunk]:
    """Start a run that dies once some chunks are done; these."""
    world.arm("snapshot_chunks_recorded")
    died_at(world, world.start(), "snapshot_chunks_recorded")
    assert "snapshotting" in world.states().values(), world.states()
    done = done_chunks()
    assert 0 < len(done) < SnapshotChunk.objects.count()
    return done


def log_of(server: EmbeddedPostgres) -> str:
    """Every statement that the server was sent so far."""
    return server.log_path.read_text(errors="replace")


def was_asked(log: str, chunk: CopyChunk) -> bool:
    return f"COPY ({chunk.spec}) TO STDOUT" in log


def test_a_killed_snapshot_goes_on_and_reads_no_finished_chunk_again(
    twin_maker: MakeWorld, server: EmbeddedPostgres
) -> None:
    """Guards CORRECTNESS 17. Without the keys of the log since the first view, rows that moved to
    another page would be lost or doubled and deleted ones would stay; without reading these rows
    again by key, values that the log does not carry would be lost or another row's; without the
    list of finished chunks, their queries would be seen again here."""
    with twin_maker(server=server, prepare=lambda d: make_shop(d, ROWS)) as world:
        traffic = Traffic(world.database, seed=3)
        first = kill_in_the_middle(world)
        until_first = len(log_of(server))
        for statement in TROUBLE:
            world.database.execute(statement)
        traffic.write(20)
        second = kill_in_the_middle(world)
        until_second = len(log_of(server))
        assert {c.path for c in first} < {c.path for c in second}
        for statement in TROUBLE[:2] + TROUBLE[6:]:
            world.database.execute(statement)
        traffic.write(20)

        child = world.start()
        world.assert_equal()
        log = log_of(server)
        assert all(was_asked(log[:until_second], c) for c in second)
        assert not any(was_asked(log[until_first:], c) for c in first)
        assert not any(was_asked(log[until_second:], c) for c in second)
        reported = re.findall(r"(\d+) of \d+ chunks were copied before", world.log_text())
        assert len(second) in map(int, reported), child.tail()
        assert re.search(r"[\d,]+ rows that changed since", world.log_text())
        assert not SnapshotChunk.objects.exists(), "what is done is still remembered"
        traffic.write(20)
        world.assert_equal()
        assert world.stop() == 0


def rewrite(database: Database) -> None:
    database.execute("DELETE FROM shop.items WHERE id % 2 = 0")
    database.execute("VACUUM FULL shop.items")


def empty(database: Database) -> None:
    database.execute("TRUNCATE shop.items")
    database.execute("INSERT INTO shop.items (id) SELECT generate_series(1, 1000)")


@pytest.mark.long
@pytest.mark.parametrize("change", [rewrite, empty])
def test_a_snapshot_that_can_not_go_on_starts_again(
    world_maker: MakeWorld, server: EmbeddedPostgres, change: object
) -> None:
    """Rows that were given other places without a word in the log, and a TRUNCATE: chunks of before
    are worth nothing."""
    with world_maker(
        server=server, prepare=lambda d: make_shop(d, ROWS), tables=("items",)
    ) as world:
        kill_in_the_middle(world)
        change(world.database)  # type: ignore[operator]
        world.start()
        world.assert_equal()
        assert world.stop() == 0
