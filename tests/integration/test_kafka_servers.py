"""The servers that the tests of Kafka stand on."""

from __future__ import annotations

import json
import urllib.request

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka_servers import KafkaBroker, SchemaRegistry, fresh_prefix, kafka_cluster

pytestmark = [pytest.mark.integration]


@pytest.mark.long
def test_a_broker_keeps_its_topics_over_a_restart() -> None:
    """Guards the fixture: a broker that forgets would hide every lost message."""
    topic = fresh_prefix() + "kept"
    with KafkaBroker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(10)
        broker.kill()
        broker.start()
        assert topic in admin.list_topics(timeout=10).topics


@pytest.mark.long
def test_three_brokers_are_one_cluster() -> None:
    """Guards the fixture of the leader change."""
    with kafka_cluster() as brokers:
        admin = AdminClient({"bootstrap.servers": brokers[0].address})
        assert len(admin.list_topics(timeout=10).brokers) == 3


def test_the_registry_keeps_a_schema(schema_registry: SchemaRegistry) -> None:
    """Guards the address that Avro's encoder is given."""
    subject = fresh_prefix() + "value"
    body = json.dumps({"schema": '{"type": "string"}'}).encode()
    asked = urllib.request.Request(  # noqa: S310 (a server of the test's own)
        f"{schema_registry.url}/subjects/{subject}/versions", body,
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )  # fmt: skip
    with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310
        assert json.load(answer)["id"] > 0
