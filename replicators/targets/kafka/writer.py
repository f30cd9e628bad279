"""The Kafka target: every change is a message.

The changes of a key are on one partition, in order. A batch that was sent and not recorded is sent
again from its begin, so a message may come twice, but no version of a row is first seen after a
later one. A topic of state says which replicator's table a topic belongs to.
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import replace

from replicators.connectors import files
from replicators.connectors.feed.messages import Encoder, encoder, resolved_value
from replicators.connectors.feed.registry import ids_of
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import ChangeBatch, Resolved, TargetTable
from replicators.connectors.tasks import Tasks
from replicators.targets.kafka.encoding import Work, messages, works, write_messages
from replicators.targets.kafka.errors import translated
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.sending import Headers, Sender, send_by_spark
from replicators.targets.kafka.topics import (
    Claim,
    Topic,
    Topics,
    claim_key,
    claim_value,
    topic_name,
)

ROWS_HERE = 5_000
"""Up to this many rows, this process sends the messages itself: a job would cost more."""
KNOWN_SECONDS = 60.0
"""After so long, the brokers are asked again how many partitions a topic has."""


class KafkaSink:
    """Writes to one cluster."""

    def __init__(self, params: KafkaParams, tasks: Tasks) -> None:
        self._params, self._tasks = params, tasks
        self._topics = Topics(params)
        self._sender = Sender(params)
        self._lock = threading.Lock()
        self._claims: dict[str, Claim] | None = None
        self._known: dict[str, tuple[float, Topic]] = {}

    def names(self, table: TableId) -> tuple[str, ...]:
        """The topic."""
        return (topic_name(self._params, table),)

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """Claim the topic. It is made if it does not exist and that is allowed."""
        name = topic_name(self._params, table.source)
        with translated(table.source, name):
            claims = self._read_claims(again=True)
            if self._topics.find(self._topics.state) is None:
                self._topics.make(self._topics.state, is_state=True)
            old = claims.get(claim_key(name, table.source))
            if old is not None and old.replicator != table.replicator:
                raise self._taken(table, name)
            is_made = old is not None and old.is_made
            topic = self._topics.find(name)
            if topic is None:
                self._topics.make(name)
                is_made = True
            elif old is None and not self._params.topic and self._topics.has_messages(topic):
                raise self._taken(table, name)
            self._known.pop(name, None)
            claim = Claim(
                table.replicator,
                table.generation,
                old.copy + 1 if old else 1,
                old.resolved if old else 0.0,
                is_made,
            )
            self._write(name, table.source, claim)

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Send the batch. Returns the number of messages' rows."""
        name = topic_name(self._params, table.source)
        with translated(table.source, name):
            claim = self._claim(table, name)
            if not batch.lanes:
                return 0
            try:
                self._deliver(table, batch, claim, self._topic(name))
            except ReplicationError:
                self._known.pop(name, None)
                raise
        return sum(lane.rows for lane in batch.lanes)

    def _deliver(self, table: TargetTable, batch: ChangeBatch, claim: Claim, topic: Topic) -> None:
        work = Work(
            batch.lanes, self._encoder(batch.schema, topic), topic,
            max(batch.resolved_at, claim.resolved),
        )  # fmt: skip
        headers = self._constants(table.source, claim)
        spark = self._tasks.spark
        if spark is None or sum(lane.rows for lane in batch.lanes) <= ROWS_HERE:
            self._sender.send(topic.name, messages(work), headers)
            return
        folder = f"{self._tasks.folder.rstrip('/')}/kafka-{uuid.uuid4().hex}"
        files.make_folder(folder)
        try:
            paths = [f"{folder}/{number:06d}.parquet" for number in range(len(batch.lanes))]
            parts = works(work, paths)
            if any(self._tasks.map(write_messages, parts)):
                written = [part.path for part in parts]
                send_by_spark(spark, self._params, topic, written, headers)
        finally:
            files.remove_folder(folder)

    def _encoder(self, schema: TableSchema, topic: Topic) -> Encoder:
        options, registry = self._params.feed, self._params.schema_registry
        if registry is None:
            return encoder(schema, options)
        is_shared = bool(self._params.topic)
        ids = ids_of(registry, schema, options, topic.name, is_shared=is_shared)
        return encoder(schema, options, ids=ids)

    def _constants(self, table: TableId, claim: Claim) -> Headers:
        found: Headers = [("copy", b"%d" % claim.copy)]
        if self._params.topic:
            found.append(("table", f"{table.schema}.{table.name}".encode()))
        return found

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Tell every partition. The time is recorded first, so it never goes back."""
        if not self._params.resolved:
            return
        name = topic_name(self._params, table.source)
        with translated(table.source, name):
            claim = self._claim(table, name)
            if mark.at <= claim.resolved:
                return
            self._write(name, table.source, replace(claim, resolved=mark.at))
            headers: Headers = [("op", b"resolved"), *self._constants(table.source, claim)]
            places = range(self._topic(name).partitions)
            self._sender.put(name, None, resolved_value(mark.at), places, headers)

    def drop(self, table: TargetTable) -> None:
        """Give the topic back if it belongs to this replicator. A topic that we made for this table
        alone is removed."""
        name = topic_name(self._params, table.source)
        with translated(table.source, name):
            claim = self._read_claims(again=True).get(claim_key(name, table.source))
            if claim is None or claim.replicator != table.replicator:
                return
            if claim.is_made and not self._params.topic:
                self._topics.remove(name)
            self._known.pop(name, None)
            self._write(name, table.source, None)

    def _topic(self, name: str) -> Topic:
        at, known = self._known.get(name, (0.0, None))
        if known is None or time.monotonic() - at > KNOWN_SECONDS:
            known = self._topics.find(name)
            if known is None:
                raise ReplicationError("target:kafka-topic-missing", topic=name)
            self._known[name] = time.monotonic(), known
        return known

    def _claim(self, table: TargetTable, name: str) -> Claim:
        claim = self._read_claims().get(claim_key(name, table.source))
        if claim is None:
            raise ReplicationError("target:table-missing", table=table.source)
        if (claim.replicator, claim.generation) != (table.replicator, table.generation):
            raise ReplicationError("target:table-replaced", table=table.source)
        return claim

    def _read_claims(self, *, again: bool = False) -> dict[str, Claim]:
        with self._lock:
            if self._claims is None or again:
                self._claims = self._topics.claims()
            return self._claims

    def _write(self, name: str, table: TableId, claim: Claim | None) -> None:
        key = claim_key(name, table)
        value = None if claim is None else claim_value(claim)
        self._sender.put(self._topics.state, key.encode(), value, range(1), [])
        with self._lock:
            claims = self._claims if self._claims is not None else {}
            if claim is None:
                claims.pop(key, None)
            else:
                claims[key] = claim

    def _taken(self, table: TargetTable, name: str) -> ReplicationError:
        return ReplicationError("target:table-taken", table=table.source, target=name)
