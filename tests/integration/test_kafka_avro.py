"""Avro through a real registry and a real broker: what a consumer reads. Schemas that evolve or are
refused: `test_feed_registry.py`."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal as D

import pyarrow as pa
import pytest

from demo.postgres import free_port
from replicators.connectors.contract.sink import HeldLane
from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Decimal, Int, LogicalType, String
from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.target import BatchKind, ChangeBatch, TargetTable
from replicators.targets.kafka.checks import KafkaChecks
from replicators.targets.kafka.params import KafkaParams, places
from replicators.targets.kafka.writer import KafkaSink
from runners.engine.tasks.local import LocalTasks
from tests.feeds import Change, batch
from tests.kafka_servers import KafkaBroker, SchemaRegistry, fresh_prefix
from tests.kafka_world import consumed

pytestmark = [pytest.mark.integration]


def table(**columns: LogicalType) -> TableSchema:
    """A table with the key `id` and these columns."""
    found = [Column("id", Int(64), "int8"), *(Column(n, k, "") for n, k in columns.items())]
    return TableSchema(TableId("s", "t"), tuple(found), ("id",), ("id",))


def test_a_consumer_reads_the_rows_by_the_registrys_schemas(
    kafka: KafkaBroker, schema_registry: SchemaRegistry
) -> None:
    """Guards the whole way: parameters, registered schemas, messages on the broker, and a new
    column in between. Two tables share the topic. The topic of schemas is told each schema once,
    before its first message."""
    params = KafkaParams(
        kafka.address,
        topic_prefix=fresh_prefix(),
        topic="all",
        schema_topic="schemas",
        partitions=2,
        format="avro",
        registry=schema_registry.url,
    )
    with KafkaChecks(params) as checks:
        assert checks.connection() == []
    sink = KafkaSink(params, LocalTasks(2))
    old, new = table(price=Decimal(9, 2)), table(price=Decimal(9, 2), name=String())
    other = replace(old, id=TableId("s", "other"))
    for number, schema in enumerate((old, other), 1):
        target = TargetTable(schema.id, "r", number, mode=Mode.APPEND)
        sink.begin(target, schema)
    live = TargetTable(old.id, "r", 1, mode=Mode.APPEND)
    sink.deliver(live, changes_of(old, Change(Op.INSERT, {"id": 1, "price": D("2.50")})))
    row = {"id": 1, "price": D("-0.01"), "name": "pen"}
    sink.deliver(live, changes_of(new, Change(Op.UPDATE, row)))
    gone = Change(Op.DELETE, {"id": 1})
    sink.deliver(TargetTable(other.id, "r", 2, mode=Mode.APPEND), changes_of(other, gone))
    told = consumed(kafka.address, f"{params.topic_prefix}all")
    found = [(schema_registry.decoded(m.key or b""), m.value, m.headers["table"]) for m in told]
    assert {(k["id"], name) for k, _, name in found} == {(1, "s.t"), (1, "s.other")}
    values = [schema_registry.decoded(v) for _, v, name in found if name == "s.t" and v]
    assert values == [
        {"id": 1, "price": D("2.50"), "_unsent": None},
        {"id": 1, "price": D("-0.01"), "name": "pen", "_unsent": None},
    ]
    assert [v for _, v, name in found if name == "s.other"] == [None]
    described = consumed(kafka.address, f"{params.topic_prefix}schemas")
    assert [(m.op, json.loads(m.key or b""), len(m.json["columns"])) for m in described] == [
        ("schema", ["s", "t"], 2),
        ("schema", ["s", "t"], 3),
        ("schema", ["s", "other"], 2),
    ]
    assert described[1].json["value_schema"]["fields"][2]["name"] == "name"
    dead = replace(params, registry=f"http://127.0.0.1:{free_port()}")
    with KafkaChecks(dead) as checks:
        assert [p.code for p in checks.connection()] == ["target:registry-unreachable"]


def test_a_registry_needs_avro_and_an_address() -> None:
    """Guards the parameters, and that a login in the address is refused."""
    for wrong in ("ftp://x", "http://", "http://ann:s3cret@host", "host:8081", "http://h:99999"):
        with pytest.raises(InvalidParams) as found:
            parse(KafkaParams, {"servers": "h:9092", "format": "avro", "registry": wrong})
        assert set(found.value.errors) == {"registry"}
    with pytest.raises(InvalidParams):
        KafkaParams("h:9092", registry="http://h:8081")
    params = KafkaParams(
        "h:9092", format="avro", registry="https://h/x", registry_password="s3cret"
    )
    assert "s3cret" not in repr(params)
    assert ("h", 443) in {(p.value, p.port) for p in places(params)}


def changes_of(schema: TableSchema, change: Change) -> ChangeBatch:
    """One change as a batch."""
    rows = pa.Table.from_batches([batch(schema, [change])])
    lane = HeldLane(1, 1, 1, 1, rows)
    return ChangeBatch(BatchKind.CHANGES, schema, 0, 1, (lane,))
