"""The whole path into Spanner, played by a small server of its protocol's messages: PostgreSQL's
rows and every change arrive once, over a kill."""

from __future__ import annotations

import pytest

from tests.crash.test_failpoints import died_at
from tests.harness import FILL_ITEMS, Traffic
from tests.spanner_server import SpannerServer
from tests.spanner_world import SpannerWorld
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.long]


def test_postgresql_and_spanner_have_equal_rows(
    world_maker: MakeWorld, spanner: SpannerServer
) -> None:
    """Guards the target over the whole path: every type, composite keys, no key, unsent values,
    changed keys, a new column and a TRUNCATE, with a SIGKILL between load and merge. Nothing of
    ours is left but the progress table and an empty journal."""
    with world_maker(kind=SpannerWorld, played=spanner) as world:
        assert isinstance(world, SpannerWorld)
        traffic = Traffic(world.database)
        child = world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(20)
        world.assert_equal()
        with traffic.going_on():
            world.arm("batch_staged")
            died_at(world, child, "batch_staged")
        world.start()
        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_020})
        world.database.execute("TRUNCATE shop.pairs")
        traffic.write(5)
        world.assert_equal()
        assert world.stop() == 0
        assert world.left_over("views") == set()
