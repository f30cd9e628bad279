"""Two PostgreSQL databases that replicate into each other, while both are written."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from demo.postgres import EmbeddedPostgres
from runners.models import ChangeFile
from runners.tables.conflicts import conflicts_of
from tests.integration.test_postgresql_two_way import GRANTS
from tests.postgres_target import ROLE
from tests.postgres_target_world import PostgresTargetWorld
from tests.servers import Database, fresh_database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.timeout(600)]
MADE = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id int PRIMARY KEY, note text, n int, doc text);
ALTER TABLE shop.orders ALTER doc SET STORAGE EXTERNAL;
INSERT INTO shop.orders SELECT g, 'first', 0, repeat('x', 3000) FROM generate_series(1, 40) g;
"""
WRITES = (
    "INSERT INTO shop.orders VALUES (%(k)s, %(v)s, 1, repeat('i', 3000)) ON CONFLICT DO NOTHING",
    "UPDATE shop.orders SET note = %(v)s, n = n + 1 WHERE id = %(k)s",
    "UPDATE shop.orders SET doc = repeat(%(v)s, 600) WHERE id = %(k)s",
    "DELETE FROM shop.orders WHERE id = %(k)s",
    "UPDATE shop.orders SET id = %(to)s WHERE id = %(k)s"
    " AND NOT EXISTS (SELECT FROM shop.orders WHERE id = %(to)s)",
)
SKIPS = {"skip_origins": "any"}


@pytest.fixture
def copies(postgres: EmbeddedPostgres) -> Iterator[Database]:
    with fresh_database(postgres) as made:
        yield made


def write(side: Database, name: str, rng: random.Random, count: int) -> int:
    """Random changes of few keys, each in a transaction; the number of rows that changed."""
    done = 0
    with side.connect() as connection:
        for number in range(count):
            values = {"k": rng.randint(1, 60), "to": rng.randint(1, 60), "v": f"{name}{number}"}
            done += connection.execute(rng.choice(WRITES), values).rowcount
    return done


@contextmanager
def both_ways(
    world_maker: MakeWorld, copies: Database
) -> Iterator[tuple[PostgresTargetWorld, PostgresTargetWorld]]:
    """As docs/two-way.md says it: the first way copies, the second takes over. Then both sides may
    be written."""
    with world_maker(
        kind=PostgresTargetWorld,
        copies=copies,
        prepare=lambda database: database.execute(MADE),
        tables=("orders",),
        source=SKIPS,
        target={"origin": "from_a"},
    ) as there:
        assert isinstance(there, PostgresTargetWorld)
        one = there.database
        for side in (one, copies):
            side.execute(GRANTS)
        there.start()
        there.settle()
        one.execute(f"ALTER SCHEMA shop OWNER TO {ROLE}; ALTER TABLE shop.orders OWNER TO {ROLE}")
        folder = there.folder / "back"
        folder.mkdir()
        back = PostgresTargetWorld(
            folder, copies, ("orders",), there.application, copies=one, source=SKIPS,
            target={"origin": "from_b"}, options={"first_copy": "take_over"},
        )  # fmt: skip
        try:
            back.start()
            back.settle()
            yield there, back
        finally:
            back.close()
            there.close()
            for name in ("from_a", "from_b"):
                one.execute(
                    "SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin"
                    " WHERE roname = %s",
                    [name],
                )


def captured(world: PostgresTargetWorld) -> int:
    """The changes that were read from its source's log."""
    files = ChangeFile.objects.filter(replicator=world.replicator)
    return sum(f.inserts + f.updates + f.deletes for f in files)


@pytest.mark.parametrize("seed", [53, *(pytest.param(n, marks=pytest.mark.long) for n in (54, 55))])
def test_both_sides_end_equal(world_maker: MakeWorld, copies: Database, seed: int) -> None:
    """Both sides change the same keys at the same time, and one run is killed. In the end they are
    equal. Each change was read once and by one way only, so that none goes round. What lost is
    listed with both versions."""
    rng = random.Random(seed)
    with both_ways(world_maker, copies) as (there, back):
        written = [0, 0]
        for turn in range(4):
            written[0] += write(there.database, "a", rng, 40)
            written[1] += write(copies, "b", rng, 40)
            if turn == 1:
                there.kill()
            if turn == 2:
                there.start()
        there.settle()
        back.settle()
        there.assert_equal()
        assert [captured(there), captured(back)] == written
        found = conflicts_of(there.replicator) + conflicts_of(back.replicator)
        assert found, "no conflict came about"
        assert all(one.kept_at >= one.lost_at for one in found)
        assert all(one.kept is not None or one.lost is not None for one in found)
