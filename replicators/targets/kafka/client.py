"""Settings of Kafka's client, librdkafka."""

from __future__ import annotations

from typing import Any

from replicators.targets.kafka.errors import Heard
from replicators.targets.kafka.params import PLAIN, PROTOCOLS, SASL, SASL_TLS, KafkaParams

ASK_SECONDS = 10.0
SEND_SECONDS = 60.0
"""A batch of which no broker took anything for this long fails."""


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


def producing(params: KafkaParams, heard: Heard, *, is_bulk: bool) -> dict[str, Any]:
    """Settings of a producer. A message that fails stops all later ones: without that, a later
    version of a row could be seen before an earlier one."""
    return settings(params, heard) | {
        "enable.idempotence": True,
        "enable.gapless.guarantee": True,
        "acks": "all",
        "message.timeout.ms": 0,  # one message must not be given up before later ones
        "linger.ms": 20 if is_bulk else 2,
        "delivery.report.only.error": is_bulk,
        "compression.type": "lz4",
        "message.max.bytes": 1_000_000_000,
        "queue.buffering.max.kbytes": 131_072,
    }
