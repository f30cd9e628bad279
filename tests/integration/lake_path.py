"""What a lakehouse in a store goes through in a test of its whole path."""

from __future__ import annotations

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import Traffic, World
from tests.integration.test_catalog_password import command_words

TABLE = TableSchema(TableId("shop", "items"), (Column("id", Int(64), "bigint"),), ("id",))


def over_a_kill(world: World, *hidden: str) -> None:
    """A first copy, changed keys, a SIGKILL while batches are merged, a new column, a fresh copy.
    The tables are `items` and `views`. `hidden` is in no log and in no argument."""
    params: LakehouseParams = parse(LakehouseParams, world.target_params()[1])
    with LakehouseChecks(params) as checks:
        assert [p.code for p in checks.connection() + checks.tables([TABLE], "")] == []
    traffic = Traffic(world.database)
    world.start()
    world.until_states("replicating")
    with traffic.going_on():
        world.moves_on("items")
        world.kill()
    world.database.execute("ALTER TABLE shop.items ADD COLUMN extra int DEFAULT 7")
    traffic.write(10)
    child = world.start()
    world.assert_equal()
    words = command_words(child.pid)
    world.resync("views")
    traffic.write(5)
    world.assert_equal()
    assert world.stop() == 0
    logged = "".join(p.read_text() for p in world.folder.glob("*.log")) + world.log_text()
    assert not any(secret in text for secret in hidden for text in [*words, logged])
