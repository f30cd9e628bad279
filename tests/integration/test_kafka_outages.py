"""Outages on the way into Kafka: leaders that change, and a registry that is away or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from demo.postgres import HOST, free_port
from replicators.connectors.contract.sink import HeldLane
from replicators.connectors.feed.registry import Registry
from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, LogicalType, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import BatchKind, ChangeBatch, TargetTable
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.writer import KafkaSink
from runners.engine.tasks.local import LocalTasks
from tests.feeds import Change, batch
from tests.harness import Traffic, until
from tests.kafka_servers import (
    KafkaBroker,
    SchemaRegistry,
    fresh_prefix,
    kafka_cluster,
)
from tests.kafka_world import LocalKafkaWorld, consumed
from tests.proxies import CuttingProxy
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
TABLES = ("items", "pairs")


@pytest.mark.long
def test_a_run_goes_on_while_leaders_change(world_maker: MakeWorld) -> None:
    """Guards three brokers: each is killed in turn while changes flow, so every partition gets
    another leader. No acknowledged message is lost, and each key's changes stay in order."""
    with kafka_cluster() as brokers:
        servers = ",".join(b.address for b in brokers)
        made: Any = world_maker(
            kind=LocalKafkaWorld, tables=TABLES, target={"servers": servers, "replicas": 3}
        )
        with made as world:
            traffic = Traffic(world.database)
            world.start()
            world.until_states("replicating")
            with traffic.going_on():
                for broker in brokers:
                    world.moves_on("items")
                    broker.kill()
                    world.moves_on("items")
                    broker.start()
                    until(lambda: brokers[0].members() == 3, "the brokers are whole again", 60.0)
            world.assert_equal()
            assert world.faults(may_repeat=True) == []
            assert world.stop() == 0


@pytest.mark.long
def test_changes_wait_for_the_registry_and_for_its_consent(
    kafka: KafkaBroker, schema_registry: SchemaRegistry
) -> None:
    """Guards a registry that is away and one that refuses a schema: each has a code, nothing of
    the batch is sent, and the same batch comes once later."""
    registry = Registry(schema_registry.url)
    with CuttingProxy(schema_registry.port) as proxy:
        params = KafkaParams(
            kafka.address,
            topic_prefix=fresh_prefix(),
            partitions=2,
            format="avro",
            registry=f"http://{HOST}:{proxy.port}/apis/ccompat/v7",
        )
        sink = KafkaSink(params, LocalTasks(2))
        topic = f"{params.topic_prefix}shop.t"
        first, other = table(name=String()), table(name=Int(32))
        live = TargetTable(first.id, "r", 1, mode=Mode.APPEND)
        sink.begin(live, first)
        proxy.lead_to(free_port())
        rows = changes_of(first, 1, {"id": 1, "name": "pen"})
        assert refusal(lambda: sink.deliver(live, rows)) == "target:registry-unreachable"
        assert consumed(kafka.address, topic) == []
        proxy.lead_to(schema_registry.port)
        sink.deliver(live, rows)
        rows = changes_of(other, 2, {"id": 1, "name": 7})
        registry.require(f"{topic}-value", "FULL")
        assert refusal(lambda: sink.deliver(live, rows)) == "target:registry-incompatible"
        assert len(consumed(kafka.address, topic)) == 1
        registry.require(f"{topic}-value", "NONE")
        sink.deliver(live, rows)
        told = consumed(kafka.address, topic)
        assert [schema_registry.decoded(m.value or b"")["name"] for m in told] == ["pen", 7]


def table(**columns: LogicalType) -> TableSchema:
    """A table with the key `id` and these columns."""
    found = [Column("id", Int(64), "int8"), *(Column(n, k, "") for n, k in columns.items())]
    return TableSchema(TableId("shop", "t"), tuple(found), ("id",), ("id",))


def changes_of(schema: TableSchema, sequence: int, row: dict[str, Any]) -> ChangeBatch:
    """One insertion as a batch."""
    rows = pa.Table.from_batches([batch(schema, [Change(Op.INSERT, row)])])
    lane = HeldLane(1, sequence, sequence, 1, rows)
    return ChangeBatch(BatchKind.CHANGES, schema, sequence - 1, sequence, (lane,))


def refusal(act: Callable[[], object]) -> str:
    """The code of the error."""
    with pytest.raises(ReplicationError) as found:
        act()
    return found.value.code
