"""Settings of Kafka's two clients (librdkafka in Python, Java in Spark), and librdkafka's errors as
error codes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.kafka.params import PLAIN, PROTOCOLS, SASL, SASL_TLS, KafkaParams

ASK_SECONDS = 10.0
SEND_SECONDS = 60
"""A message that no broker took for this long is given up, and its batch fails."""
FOREVER = "2147483647"

_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_LOGIN = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_MISSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}


def settings(params: KafkaParams) -> dict[str, Any]:
    """What every client of librdkafka is told."""
    found: dict[str, Any] = {
        "bootstrap.servers": params.servers,
        "security.protocol": PROTOCOLS[params.security],
        "log_level": 0,
        "socket.timeout.ms": round(ASK_SECONDS * 1000),
        "reconnect.backoff.max.ms": 1000,
    }
    if params.security in {SASL, SASL_TLS}:
        found |= {
            "sasl.mechanism": params.mechanism,
            "sasl.username": params.user,
            "sasl.password": params.password,
        }
    if params.security != PLAIN and params.ca_file:
        found["ssl.ca.location"] = params.ca_file
    return found


def producing(params: KafkaParams) -> dict[str, Any]:
    """Settings of a producer. A message that fails stops all later ones: without that, a later
    version of a row could be seen before an earlier one."""
    return settings(params) | {
        "enable.idempotence": True,
        "enable.gapless.guarantee": True,
        "acks": "all",
        "message.timeout.ms": SEND_SECONDS * 1000,
        "linger.ms": 2,
        "compression.type": "lz4",
        "message.max.bytes": 1_000_000_000,
        "queue.buffering.max.kbytes": 131_072,
    }


def java_settings(params: KafkaParams) -> dict[str, str]:
    """Options of Spark's sink. Its producer never gives a message up, so that no later one of the
    same partition can overtake it."""
    found = {
        "bootstrap.servers": params.servers,
        "security.protocol": PROTOCOLS[params.security],
        "enable.idempotence": "true",
        "acks": "all",
        "delivery.timeout.ms": FOREVER,
        "linger.ms": "20",
        "batch.size": "262144",
        "compression.type": "lz4",
        "max.request.size": "1000000000",
    }
    if params.security in {SASL, SASL_TLS}:
        kind = "plain.Plain" if params.mechanism == "PLAIN" else "scram.Scram"
        module = f"org.apache.kafka.common.security.{kind}LoginModule"
        found["sasl.mechanism"] = params.mechanism
        found["sasl.jaas.config"] = (
            f"{module} required username={_quoted(params.user)} "
            f"password={_quoted(params.password)};"
        )
    if params.security != PLAIN and params.ca_file:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": params.ca_file}
    return {f"kafka.{name}": value for name, value in found.items()}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def code_of(fault: KafkaError | None) -> str:
    """The error code for a fault that librdkafka reports."""
    kind = fault.code() if fault is not None else None
    if kind in _LARGE:
        return "target:kafka-message-large"
    if kind in _REFUSED:
        return "target:kafka-refused"
    if kind in _LOGIN:
        return "target:kafka-login"
    if kind in _MISSING:
        return "target:kafka-topic-missing"
    return "target:unreachable"


@contextlib.contextmanager
def translated(table: TableId | None = None, topic: str = "") -> Iterator[None]:
    """Raise librdkafka's errors as `ReplicationError`s."""
    try:
        yield
    except KafkaException as err:
        fault = err.args[0] if err.args and isinstance(err.args[0], KafkaError) else None
        name = fault.name() if fault is not None else type(err).__name__
        raise ReplicationError(
            code_of(fault), table=table, name_of_error=name, topic=topic
        ) from err
