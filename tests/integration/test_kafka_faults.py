"""Faults of brokers and the registry on the way into Kafka: each has a code, nothing is lost, and
the order stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from confluent_kafka.admin import AclOperation

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.targets.kafka.checks import KafkaChecks
from replicators.targets.kafka.params import MECHANISMS, PLAIN, SASL, SASL_TLS, TLS, KafkaParams
from tests.harness import Traffic, make_shop
from tests.kafka_servers import (
    PERSON,
    SECRET,
    SecuredBroker,
    set_limit,
)
from tests.kafka_world import LocalKafkaWorld, Told, consumed
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
TABLES = ("items", "pairs")
LARGE, LATER = 2_000_001, 2_000_002
"""Keys whose messages are larger than the topic takes."""


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredBroker]:
    """A broker with logins, encryption and rights."""
    with SecuredBroker() as broker:
        broker.add_user()
        yield broker


class SecuredWorld(LocalKafkaWorld):
    """Its runs log in over TLS; its messages are read by one who may do everything."""

    broker: ClassVar[SecuredBroker]

    def messages(self, name: str) -> list[Told]:
        prefix = self.target_params()[1]["topic_prefix"]
        return consumed(self.broker.address, f"{prefix}{self.schema}.{name}")


def login(broker: SecuredBroker, security: str = SASL_TLS) -> dict[str, Any]:
    """The fields of a connection as the person."""
    found: dict[str, Any] = {"servers": broker.at(security), "security": security}
    if security in {SASL, SASL_TLS}:
        found |= {"user": PERSON, "password": SECRET}
    if security in {TLS, SASL_TLS}:
        found["ca_file"] = broker.ca_file
    return found


def codes(params: KafkaParams, *tables: TableSchema) -> list[str]:
    """What the assessment finds."""
    with KafkaChecks(params) as checks:
        return [p.code for p in (*checks.connection(), *checks.tables(tables, "r"))]


def make_small_shop(database: Database) -> None:
    """The shop with a few rows."""
    make_shop(database, rows=200)


def insert_large(database: Database, key: int) -> None:
    """A row of 1.5 MB. A topic takes 1 MB by default."""
    database.execute(
        "INSERT INTO shop.items (id, big) VALUES (%(id)s, repeat('x', 1500000))", {"id": key}
    )


@pytest.mark.long
def test_large_messages_and_refused_topics_wait_while_the_others_go_on(
    world_maker: MakeWorld, secured: SecuredBroker
) -> None:
    """Guards quarantine and rights over the whole path, with a login over TLS. A message that is
    too large waits, with the later ones of its key; other keys go on; when the topic takes it, all
    come in order, also those of an earlier run. The broker is killed and comes back. A table whose
    topic is refused fails alone, and goes on once it is allowed."""
    target = login(secured)
    SecuredWorld.broker = secured
    made: Any = world_maker(
        kind=SecuredWorld, tables=TABLES, target=target, prepare=make_small_shop
    )
    with made as world:
        prefix = world.target_params()[1]["topic_prefix"]
        items = f"{prefix}shop.items"
        params = KafkaParams(**target, topic_prefix=prefix)
        schema = TableSchema(
            TableId("shop", "items"), (Column("id", Int(64), "int8"),), ("id",), ("id",)
        )
        assert set(codes(params, schema)) == {"target:kafka-refused"}
        secured.allow(prefix, *RIGHTS)
        assert codes(params, schema) == []
        traffic = Traffic(world.database)
        world.start()
        world.until_states("replicating")
        world.assert_equal()

        insert_large(world.database, LARGE)
        world.database.execute("UPDATE shop.items SET big = 'small' WHERE id = %s", [LARGE])
        traffic.write(3)
        world.settle()
        assert not of(world, LARGE)
        world.until(lambda: "Messages quarantined: 2" in world.log_text(), "the log says so")
        assert world.stop() == 0
        world.start()
        insert_large(world.database, LATER)
        world.database.execute("UPDATE shop.items SET n = 7 WHERE id = %s", [LARGE])
        traffic.write(2)
        world.settle()
        assert not of(world, LARGE) and not of(world, LATER)
        set_limit(secured.address, items, 8 << 20)
        world.until(lambda: of(world, LATER), "what waits is sent once the topic takes it")
        secured.kill()
        traffic.write(2)
        secured.start()
        assert [m.op for m in of(world, LARGE)] == ["insert", "update", "update"]

        secured.forbid(prefix, AclOperation.WRITE)
        secured.allow(items, AclOperation.WRITE)
        secured.allow(prefix + "replicators", AclOperation.WRITE)
        traffic.write(2)
        world.until_states("failing target:kafka-refused", "pairs")
        traffic.write(2)
        world.moves_on("items")
        assert world.states()["items"] == "replicating"
        assert codes(replace(params), replace(schema, id=TableId("shop", "pairs")))
        secured.allow(prefix, AclOperation.WRITE)
        world.until_states("replicating", "pairs")
        world.assert_equal()
        assert world.faults(may_repeat=True) == []
        assert world.stop() == 0


RIGHTS = (
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
)


def of(world: SecuredWorld, key: int) -> list[Told]:
    """The messages of an item."""
    return [m for m in world.messages("items") if m.key == f"[{key}]".encode()]


@pytest.mark.parametrize("security", [SASL, SASL_TLS])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.long
def test_a_wrong_login_is_named(secured: SecuredBroker, security: str, mechanism: str) -> None:
    """Guards each mechanism, right and wrong."""
    params = KafkaParams(**login(secured, security), mechanism=mechanism)
    assert codes(params) == []
    assert codes(replace(params, password="wrong")) == ["target:kafka-login"]


@pytest.mark.long
def test_wrong_encryption_is_named(secured: SecuredBroker) -> None:
    """Guards the fields of TLS: no certificate, and a port that speaks no TLS."""
    params = KafkaParams(**login(secured, TLS))
    assert codes(params) == []
    assert codes(replace(params, ca_file="")) == ["target:kafka-tls"]
    assert codes(replace(params, servers=secured.at(PLAIN))) == ["target:kafka-tls"]
    broken = KafkaParams(**login(secured, SASL_TLS))
    assert codes(replace(broken, servers=secured.at(SASL))) == ["target:kafka-tls"]
    assert codes(replace(broken, servers=secured.at(TLS))) == ["target:kafka-login"]
