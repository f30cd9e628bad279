"""The whole path, snapshot and changes, where the work is done elsewhere or lands in another
format, with columns that come and go."""

from __future__ import annotations

import pytest

from tests.harness import FILL_ITEMS, Traffic
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]


@pytest.mark.parametrize(
    ("form", "master"),
    [("iceberg", "local-cluster[2,1,1024]"), ("delta", "local[2]")],
    ids=["iceberg on a cluster", "delta"],
)
def test_snapshot_changes_and_columns_arrive(
    world_maker: MakeWorld, form: str, master: str
) -> None:
    """Guards DESIGN 3 "On a cluster": state of the driver that a task leans on is not there in
    another process. And CORRECTNESS 5: a merge across schema versions would lose the new column's
    values or fail for ever."""
    with world_maker(format=form, environment={"REPLICATOR_SPARK_MASTER": master}) as world:
        traffic = Traffic(world.database)
        child = world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(30)
        world.assert_equal()

        world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int")
        world.database.execute(FILL_ITEMS, {"first": 5_000_000, "last": 5_000_040})
        world.database.execute(
            "UPDATE shop.items SET extra = 7 WHERE id BETWEEN 5000010 AND 5000020"
        )
        traffic.write(10)
        world.assert_equal()
        found = [r["extra"] for r in world.target_rows("items")]
        assert found.count(7) == 11

        world.database.execute("ALTER TABLE shop.items DROP COLUMN note, ADD COLUMN note text")
        world.database.execute("ALTER TABLE shop.views DROP COLUMN page")
        world.database.execute("INSERT INTO shop.views SELECT nextval('shop.numbers')")
        world.database.execute("UPDATE shop.items SET note = 'again' WHERE id < 100")
        world.until(
            lambda: "page" not in (world.target_rows("views")[0]), "the dropped column is gone"
        )
        world.settle()
        assert not world.differences("views")
        assert world.states()["items"] in {"replicating", "failing target:evolve"}
        assert not child.is_dead()
        assert world.stop() == 0
