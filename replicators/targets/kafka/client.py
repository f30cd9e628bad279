"""Settings of Kafka's two clients: librdkafka in Python, Java in Spark."""

from __future__ import annotations

from typing import Any

from replicators.targets.kafka.errors import Heard
from replicators.targets.kafka.params import PLAIN, PROTOCOLS, SASL, SASL_TLS, KafkaParams

ASK_SECONDS = 10.0
SEND_SECONDS = 60
"""A message that no broker took for this long is given up, and its batch fails."""
FOREVER = "2147483647"


def settings(params: KafkaParams, heard: Heard) -> dict[str, Any]:
    """What every client of librdkafka is told."""
    found: dict[str, Any] = {
        "bootstrap.servers": params.servers,
        "security.protocol": PROTOCOLS[params.security],
        "log_level": 0,
        "socket.timeout.ms": round(ASK_SECONDS * 1000),
        "reconnect.backoff.max.ms": 1000,
        "error_cb": heard,
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


def producing(params: KafkaParams, heard: Heard) -> dict[str, Any]:
    """Settings of a producer. A message that fails stops all later ones: without that, a later
    version of a row could be seen before an earlier one."""
    return settings(params, heard) | {
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
