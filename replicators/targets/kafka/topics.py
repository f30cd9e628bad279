"""Topics, and the topic of state: which table of which replicator a topic belongs to. It is
compacted, so it stays small; `STATE` ends its name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.kafka.client import ASK_SECONDS, settings
from replicators.targets.kafka.errors import Heard
from replicators.targets.kafka.params import KafkaParams

STATE = "replicators-state"
DEFAULT_LIMIT = 1_048_588
"""The largest message where the topic's own limit can't be read."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known of a table's topic. `copy` counts the times that a copy of the table was begun.
    `resolved`: the last time that its partitions were told. `is_made`: we made the topic. `schema`:
    a digest of the schema that the topic of schemas was told last."""

    replicator: str
    generation: int
    copy: int
    resolved: float = 0.0
    is_made: bool = False
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the brokers describe it. `limit`: the bytes of its largest message."""

    name: str
    partitions: int
    limit: int


def topic_name(params: KafkaParams, table: TableId) -> str:
    """The topic of a table's messages. Characters that Kafka does not allow become `_`."""
    text = params.topic or f"{table.schema}.{table.name}"
    name = params.topic_prefix + "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in text
    )
    return name[:249]


class Topics:
    """The brokers' topics, through an admin client that is made at the first use."""

    def __init__(self, params: KafkaParams, heard: Heard) -> None:
        self._params, self._heard = params, heard
        self._admin: AdminClient | None = None

    @property
    def state(self) -> str:
        """The name of the topic of state."""
        return self._params.topic_prefix + STATE

    @property
    def schemas(self) -> str:
        """The name of the topic of schemas; empty where there is none."""
        name = self._params.schema_topic
        return self._params.topic_prefix + name if name else ""

    @property
    def own(self) -> list[str]:
        """The topics beside those of tables."""
        return [name for name in (self.state, self.schemas) if name]

    def admin(self) -> AdminClient:
        """The admin client."""
        if self._admin is None:
            self._admin = AdminClient(settings(self._params, self._heard))
            self._heard.poll = self._admin.poll
        return self._admin

    def find(self, name: str) -> Topic | None:
        """A topic; None where there is none."""
        found = self.admin().list_topics(name, timeout=ASK_SECONDS).topics.get(name)
        if found is None or (found.error is not None and found.error.code() in _MISSING):
            return None
        if found.error is not None:
            raise KafkaException(found.error)
        return Topic(name, len(found.partitions), self._limit(name))

    def _limit(self, name: str) -> int:
        asked = ConfigResource(ResourceType.TOPIC, name)
        try:
            known = self.admin().describe_configs([asked], request_timeout=ASK_SECONDS)
            return int(known[asked].result(ASK_SECONDS)["max.message.bytes"].value)
        except KafkaException:
            return DEFAULT_LIMIT

    def make(self, name: str) -> None:
        """Make a topic if that is allowed. `target:kafka-topic-missing`"""
        if not self._params.make_topics:
            raise ReplicationError("target:kafka-topic-missing", topic=name)
        self._create(name)
        self._until(lambda: self.find(name) is not None)

    def could_make(self, name: str) -> None:
        """Let the brokers say whether they would make the topic; raises what they object to."""
        self._create(name, is_trial=True)

    def is_writable(self, name: str) -> bool:
        """Whether the user may read and write the topic, which exists."""
        asked = self.admin().describe_topics(
            TopicCollection([name]),
            include_authorized_operations=True,
            request_timeout=ASK_SECONDS,
        )
        may = asked[name].result(ASK_SECONDS).authorized_operations
        return may is None or {AclOperation.READ, AclOperation.WRITE} <= set(may)

    def _create(self, name: str, *, is_trial: bool = False) -> None:
        own = {self.state: {"cleanup.policy": "compact"}, self.schemas: {"retention.ms": "-1"}}
        topic = NewTopic(
            name,
            num_partitions=1 if name in own else self._params.partitions,
            replication_factor=self._params.replicas or -1,
            config=own.get(name, {}),
        )
        made = self.admin().create_topics(
            [topic], request_timeout=ASK_SECONDS, validate_only=is_trial
        )
        try:
            made[name].result(ASK_SECONDS)
        except KafkaException as err:
            if err.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def remove(self, name: str) -> None:
        """Remove a topic, and wait until it is gone."""
        gone = self.admin().delete_topics([name], request_timeout=ASK_SECONDS)
        try:
            gone[name].result(ASK_SECONDS)
        except KafkaException as err:
            if err.args[0].code() not in _MISSING:
                raise
        self._until(lambda: self.find(name) is None)

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + ASK_SECONDS
        while not holds() and time.monotonic() < end:
            time.sleep(0.05)

    def has_messages(self, topic: Topic) -> bool:
        """Whether anybody ever wrote into the topic."""
        consumer = self._consumer()
        try:
            places = [TopicPartition(topic.name, n) for n in range(topic.partitions)]
            return any(
                consumer.get_watermark_offsets(place, timeout=ASK_SECONDS)[1] > 0
                for place in places
            )
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            settings(self._params, self._heard)
            | {"group.id": "replicators-state", "enable.auto.commit": False}
        )

    def claims(self) -> dict[str, Claim]:
        """All claims, by `claim_key`. Nothing where there is no topic of state."""
        if self.find(self.state) is None:
            return {}
        consumer, found = self._consumer(), dict[str, Claim]()
        try:
            place = TopicPartition(self.state, 0, OFFSET_BEGINNING)
            _, end = consumer.get_watermark_offsets(place, timeout=ASK_SECONDS)
            consumer.assign([place])
            late = time.monotonic() + 3 * ASK_SECONDS
            while end > 0:
                for message in consumer.consume(10_000, 0.2):
                    fault = message.error()
                    if fault is None:
                        _take(found, message)
                    elif fault.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                        raise KafkaException(fault)
                    # Nothing is committed, so no right for the group is needed.
                at = consumer.position([TopicPartition(self.state, 0)])[0].offset
                if at >= end:
                    break
                if time.monotonic() > late:
                    raise ReplicationError("target:unreachable", topic=self.state)
        finally:
            consumer.close()
        return found


_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}


def claim_key(topic: str, table: TableId) -> str:
    """The key of a table's claim."""
    return json.dumps([topic, table.schema, table.name])


def claim_value(claim: Claim) -> bytes:
    """The value of a claim's message."""
    return json.dumps(asdict(claim)).encode()


def _take(found: dict[str, Claim], message: Any) -> None:
    key, value = message.key().decode(), message.value()
    if value is None:
        found.pop(key, None)
    else:
        found[key] = Claim(**json.loads(value))
