"""The whole path into BigQuery, seen in the emulator: PostgreSQL's rows and every change arrive
once, over kills and lost connections."""

from __future__ import annotations

import pytest

from demo.bigquery import EmbeddedBigQuery
from tests.bigquery_world import BigQueryWorld
from tests.harness import FILL_ITEMS, Traffic
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]


def test_postgresql_and_bigquery_have_equal_rows(
    world_maker: MakeWorld, bigquery: EmbeddedBigQuery
) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column, a TRUNCATE and a fresh copy, with a SIGKILL between load and merge,
    and one between the merge and its record."""
    with world_maker(kind=BigQueryWorld, target={"endpoint": bigquery.url}) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(30)
        world.assert_equal()

        for place in ("batch_staged", "target_merged"):
            assert world.child is not None
            with traffic.going_on():
                world.arm(place)
                world.until_dead(place)
            world.start()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_040})
        world.database.execute("UPDATE shop.items SET extra = 7 WHERE id >= 5000010")
        traffic.write(10)
        world.assert_equal()

        world.database.execute("TRUNCATE shop.pairs")
        world.resync("views")
        traffic.write(5)
        world.assert_equal()
        assert not world.left_over("views")
