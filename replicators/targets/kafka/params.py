"""The settings of a Kafka target. Parsing only; nothing is opened here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from replicators.connectors.addresses import Place
from replicators.connectors.feed.options import (
    AVRO,
    ENVELOPES,
    FORMATS,
    MESSAGE,
    RECORDS,
    SKIP,
    FeedOptions,
    InvalidOptions,
)
from replicators.connectors.feed.registry import Registry
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


def _url_fault(text: str) -> str:
    return "" if not text or _url(text) else "must be a URL, http://host:port"


def _url(text: str) -> SplitResult | None:
    """The parts of a URL without a login; None for anything else."""
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError:
        return None
    is_fine = found.scheme in {"http", "https"} and found.hostname and "@" not in found.netloc
    return found if is_fine and not (found.query or found.fragment) else None


@dataclass(frozen=True, slots=True)
class KafkaParams:
    """The brokers, the topics, and what a message looks like."""

    servers: str = param(
        "Bootstrap servers",
        help="host:port, several separated by commas",
        addresses=True,
        check=_servers_fault,
        is_movable=True,
    )
    security: str = param(
        "Security", default=PLAIN, choices=tuple(PROTOCOLS), addresses=True, is_movable=True
    )
    mechanism: str = param(
        "SASL mechanism", default=MECHANISMS[0], choices=MECHANISMS, is_movable=True
    )
    user: str = param("User", default="", note="with SASL", addresses=True)
    password: str = param("Password", default="", secret=True, note="with SASL")
    ca_file: str = param(
        "CA file",
        help="Certificates in PEM that sign the brokers' own. Empty: those of the machine",
        default="",
        note="with TLS",
        is_movable=True,
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
    schema_topic: str = param(
        "Schema topic",
        help="A table's schema is described in the topic prefix + this name, before the first "
        "message that has it. Empty: nowhere",
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
    registry: str = param(
        "Schema registry",
        help="Its address, for example http://host:8081. Apicurio's ends with /apis/ccompat/v7. "
        "Empty: messages in Avro do not say their schema.",
        default="",
        note="with Avro",
        addresses=True,
        secrets_go="the registry's user and password have fields of their own",
        check=_url_fault,
        is_movable=True,
    )
    registry_user: str = param(
        "Registry user", default="", note="if the registry asks for one", addresses=True
    )
    registry_password: str = param(
        "Registry password", default="", secret=True, note="if the registry asks for one"
    )
    registry_token: str = param(
        "Registry token", default="", secret=True, note="in place of user and password"
    )
    registry_ca_file: str = param(
        "Registry CA file",
        help="Certificates in PEM that sign the registry's own. Empty: those of the machine",
        default="",
        note="with https",
        is_movable=True,
    )
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
        if self.schema_topic and self.schema_topic == self.topic:
            faults["schema_topic"] = "must be another one than the topic of the tables"
        if self.registry and self.format != AVRO:
            faults["registry"] = "goes with the format avro only"
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

    @property
    def schema_registry(self) -> Registry | None:
        """The registry; None where there is none."""
        if not self.registry:
            return None
        return Registry(
            self.registry,
            self.registry_user,
            self.registry_password,
            self.registry_token,
            self.registry_ca_file,
        )


def places(params: KafkaParams) -> tuple[Place, ...]:
    """The brokers, the registry, and the files with certificates."""
    found = [
        Place("host", m[1].strip("[]"), "Bootstrap servers", int(m[2]))
        for part in params.servers.split(",")
        if (m := _SERVER.fullmatch(part.strip()))
    ]
    if url := _url(params.registry):
        port = url.port or (443 if url.scheme == "https" else 80)
        found.append(Place("host", url.hostname or "", "Schema registry", port))
    if params.ca_file:
        found.append(Place("file", params.ca_file, "CA file"))
    if params.registry_ca_file:
        found.append(Place("file", params.registry_ca_file, "Registry CA file"))
    return tuple(found)
