"""The client of a schema registry beside a real one: Apicurio."""

from __future__ import annotations

import pytest

from replicators.connectors.feed.options import FeedOptions
from replicators.connectors.feed.registry import Registry, ids_of
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, LogicalType, String
from replicators.connectors.problems.errors import ReplicationError
from tests.kafka_servers import SchemaRegistry, fresh_prefix

pytestmark = [pytest.mark.integration]


def table(**columns: LogicalType) -> TableSchema:
    """A table with the key `id` and these columns."""
    found = [Column("id", Int(64), "int8"), *(Column(n, k, "") for n, k in columns.items())]
    return TableSchema(TableId("s", "t"), tuple(found), ("id",), ("id",))


@pytest.mark.parametrize("envelope", ["none", "diff", "debezium"])
def test_columns_come_and_go_and_another_type_is_refused(
    schema_registry: SchemaRegistry, envelope: str
) -> None:
    """Guards compatible evolution, as a registry sees it, and the error of a table that stops."""
    asked = Registry(schema_registry.url)
    topic = fresh_prefix() + "t"
    options = FeedOptions(envelope, format="avro")
    first = ids_of(asked, table(a=String()), options, topic)
    asked.require(f"{topic}-value", "FULL")
    for more in (table(a=String(), b=Int(32)), table(b=Int(32))):
        found = ids_of(asked, more, options, topic)
        assert found.key == first.key and found.value != first.value
    with pytest.raises(ReplicationError) as refused:
        ids_of(asked, table(b=String()), options, topic)
    assert refused.value.code == "target:registry-incompatible"
    assert f"`{topic}-value`" in refused.value.message.text
    asked.require(f"{topic}-value", "NONE")
    assert ids_of(asked, table(b=String()), options, topic).value
    assert {f"{topic}-key", f"{topic}-value"} <= set(asked.subjects())
