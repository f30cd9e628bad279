"""The settings of a Kafka target. Parsing only; nothing is opened here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.addresses import Place
from replicators.connectors.feed.options import (
    ENVELOPES,
    FORMATS,
    MESSAGE,
    RECORDS,
    SKIP,
    FeedOptions,
    InvalidOptions,
)
from replicators.connectors.params import InvalidParams, param

PLAIN, TLS, SASL, SASL_TLS = "none", "TLS", "SASL", "SASL over TLS"
PROTOCOLS = {PLAIN: "PLAINTEXT", TLS: "SSL", SASL: "SASL_PLAINTEXT", SASL_TLS: "SASL_SSL"}
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(\d{1,5})", re.ASCII)
_TOPIC = re.compile(r"[\w.-]{0,200}", re.ASCII)


def _servers_fault(text: str) -> str:
    parts = [p.strip() for p in text.split(",")]
    is_fine = all((m := _SERVER.fullmatch(p)) and 0 < int(m[2]) < 65536 for p in parts)
    return "" if is_fine else "must be host:port, several separated by commas"


def _topic_fault(text: str) -> str:
    is_fine = _TOPIC.fullmatch(text) and text not in {".", ".."}
    return "" if is_fine else "must have only letters, digits, dots, hyphens and underscores"


@dataclass(frozen=True, slots=True)
class KafkaParams:
    """The brokers, the topics, and what a message looks like."""

    servers: str = param(
        "Bootstrap servers",
        help="host:port, several separated by commas",
        addresses=True,
        check=_servers_fault,
    )
    security: str = param("Security", default=PLAIN, choices=tuple(PROTOCOLS), addresses=True)
    mechanism: str = param("SASL mechanism", default=MECHANISMS[0], choices=MECHANISMS)
    user: str = param("User", default="", note="with SASL", addresses=True)
    password: str = param("Password", default="", secret=True, note="with SASL")
    ca_file: str = param(
        "CA file",
        help="Certificates in PEM that sign the brokers' own. Empty: those of the machine",
        default="",
        note="with TLS",
    )
    topic_prefix: str = param(
        "Topic prefix",
        help="Each table has the topic prefix + schema.table",
        default="",
        check=_topic_fault,
    )
    topic: str = param(
        "One topic",
        help="Every table goes into the topic prefix + this name",
        default="",
        check=_topic_fault,
    )
    make_topics: bool = param(
        "Make topics",
        help="Topics that do not exist are made. Without it, somebody makes them beforehand.",
        default=True,
    )
    partitions: int = param(
        "Partitions", help="Of topics that are made", default=6, minimum=1, maximum=10_000
    )
    replicas: int = param(
        "Replicas",
        help="Of topics that are made. 0: what the brokers have as default",
        default=0,
        minimum=0,
        maximum=100,
    )
    envelope: str = param(
        "Envelope",
        help="none: the new row. diff: old and new row. key_only: no values.",
        default="none",
        choices=ENVELOPES,
    )
    record: str = param(
        "Record",
        help="AFTER: the row after the change. CHANGE: changed values only. ALL: before and after.",
        default="AFTER",
        choices=RECORDS,
    )
    format: str = param("Format", default="json", choices=FORMATS)
    tombstones: bool = param(
        "Tombstones",
        help="With the envelopes diff and debezium, a deletion is followed by a message without a "
        "value. So a compacted topic forgets the row.",
        default=True,
    )
    truncates: bool = param(
        "Send TRUNCATE", help="A TRUNCATE gives a message on every partition", default=False
    )
    last_only: bool = param(
        "Last version only",
        help="Of a row that changed several times in one transaction, only the last version",
        default=False,
    )
    resolved: bool = param(
        "Resolved messages",
        help="Each partition is told up to which time everything has been sent",
        default=True,
    )

    def __post_init__(self) -> None:
        faults = {}
        if self.security in {SASL, SASL_TLS} and not (self.user and self.password):
            faults["user"] = "and password are needed with SASL"
        try:
            _ = self.feed
        except InvalidOptions as err:
            faults |= err.faults
        if faults:
            raise InvalidParams(faults)

    @property
    def feed(self) -> FeedOptions:
        """What a message looks like."""
        return FeedOptions(
            envelope=self.envelope,
            record=self.record,
            format=self.format,
            tombstones=self.tombstones,
            truncates=MESSAGE if self.truncates else SKIP,
            last_only=self.last_only,
        )


def places(params: KafkaParams) -> tuple[Place, ...]:
    """The brokers, and the file with certificates."""
    found = [
        Place("host", m[1].strip("[]"), "Bootstrap servers", int(m[2]))
        for part in params.servers.split(",")
        if (m := _SERVER.fullmatch(part.strip()))
    ]
    if params.ca_file:
        found.append(Place("file", params.ca_file, "CA file"))
    return tuple(found)
