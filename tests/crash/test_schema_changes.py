"""SIGKILL between a change of the target's columns and its record; DDL while nothing runs."""

from __future__ import annotations

import pytest

from tests.crash.test_failpoints import died_at
from tests.harness import Traffic
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900), pytest.mark.long]


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_a_kill_within_a_schema_change_and_ddl_while_nothing_runs(
    world_maker: MakeWorld, form: str
) -> None:
    """Guards that following a change can be repeated: columns that were added or renamed already
    must not be emptied, and old rows are filled again before rows of the new schema come. Then the
    log is older than the catalog."""
    with world_maker(tables=("items", "pairs"), format=form) as world:
        traffic = Traffic(world.database)
        child = world.start()
        world.settle()
        world.arm("target_evolved")
        world.database.execute(
            "ALTER TABLE shop.items ADD more int DEFAULT 7; ALTER TABLE shop.items RENAME code "
            "TO label"
        )
        traffic.write(10)
        died_at(world, child, "target_evolved")
        world.start()
        traffic.write(10)
        world.assert_equal()
        assert world.row("items").generation == 1, "it was to be followed"
        assert world.stop() == 0

        traffic.write(10)
        world.database.execute("ALTER TABLE shop.items RENAME label TO name")
        traffic.write(10)
        world.database.execute(
            "ALTER TABLE shop.items DROP more; ALTER TABLE shop.pairs ADD w int DEFAULT 3"
        )
        traffic.write(10)
        world.database.execute("ALTER TABLE shop.items RENAME name TO word")
        world.start()
        traffic.write(10)
        world.assert_equal()
        assert world.stop() == 0
