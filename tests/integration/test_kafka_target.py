"""The whole path into Kafka in JSON: each topic leads to the source's rows, with each key's changes
in order, over a SIGKILL and over a broker that is away."""

from __future__ import annotations

from typing import Any

import pytest

from replicators.targets.kafka.writer import ROWS_HERE
from tests.harness import FILL_ITEMS, Traffic, make_shop
from tests.kafka_servers import KafkaBroker
from tests.kafka_world import KafkaWorld, LocalKafkaWorld
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
TABLES = ("items", "pairs")


def kafka_world(make: MakeWorld, kind: type[KafkaWorld], server: KafkaBroker, **values: Any) -> Any:
    """A world with these two tables, in topics of its own."""
    return make(kind=kind, tables=TABLES, target={"servers": server.address}, **values)


@pytest.mark.long  # `make test` has it in the browser, and kills brokers in test_kafka_faults.py
def test_topics_lead_to_the_rows_of_the_source_over_a_kill(
    world_maker: MakeWorld, kafka: KafkaBroker
) -> None:
    """Guards the target over the whole path: every type, composite keys, unsent values and changed
    keys. The run is killed after changes were delivered and before that was recorded, so messages
    come twice. Then a TRUNCATE and a fresh copy."""
    with kafka_world(world_maker, LocalKafkaWorld, kafka) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until_states("replicating")
        traffic.write(30)
        world.assert_equal()
        assert world.faults(may_repeat=False) == []
        operations = {m.op for m in world.messages("items")}
        assert operations == {"read", "insert", "update", "delete", "resolved"}

        world.arm("changes_delivered")
        with traffic.going_on():
            world.killed_at("changes_delivered")
        world.start()
        traffic.write(10)
        world.assert_equal()
        assert world.faults(may_repeat=True) == []
        assert world.faults(may_repeat=False) != []

        world.database.execute("TRUNCATE shop.pairs")
        world.resync("items")
        traffic.write(5)
        world.assert_equal()
        assert {m.headers["copy"] for m in world.messages("items")} == {"1", "2"}
        assert world.faults(may_repeat=True) == []
        assert world.stop() == 0


@pytest.mark.long
def test_a_run_goes_on_when_the_broker_is_back(world_maker: MakeWorld) -> None:
    """Guards what a broker does not take: it waits in the change log, and comes in order."""
    with KafkaBroker() as broker, kafka_world(world_maker, LocalKafkaWorld, broker) as world:
        traffic = Traffic(world.database)
        world.start()
        world.until_states("replicating")
        with traffic.going_on():
            world.moves_on("items")
            broker.kill()
            traffic.write(5)
        written = world.mark()
        world.until(lambda: world.position() >= written, "capture goes on without a broker")
        assert not world.is_merged(written, TABLES)
        broker.start()
        world.assert_equal()
        assert world.faults(may_repeat=True) == []
        assert world.stop() == 0


MANY = 8 * ROWS_HERE
"""Rows of one transaction: so many that Spark's own sink sends them."""


def make_large_shop(database: Database) -> None:
    """The shop with more items."""
    make_shop(database)
    database.execute(FILL_ITEMS, {"first": 20_000_001, "last": 20_000_000 + MANY})


@pytest.mark.long
def test_many_changes_go_through_sparks_sink_over_a_kill(
    world_maker: MakeWorld, kafka: KafkaBroker
) -> None:
    """Guards the other way to send, over the same kill."""
    values: dict[str, Any] = {
        "prepare": make_large_shop,
        "environment": {"REPLICATOR_ROWS_PER_CHUNK": str(2 * ROWS_HERE)},
    }
    with kafka_world(world_maker, KafkaWorld, kafka, **values) as world:
        world.start()
        world.until_states("replicating")
        world.assert_equal()
        assert world.faults(may_repeat=False) == []

        world.arm("changes_delivered")
        world.database.execute("UPDATE shop.items SET n = n + 1 WHERE id > 20000000")
        world.killed_at("changes_delivered")
        sent = [m for m in world.messages("items") if m.op == "update"]
        assert len(sent) > ROWS_HERE
        traffic = Traffic(world.database)
        world.start()
        traffic.write(20)
        world.database.execute("UPDATE shop.items SET id = id + 40000000 WHERE id > 20000000")
        world.assert_equal()
        assert world.faults(may_repeat=True) == []
        assert world.stop() == 0
