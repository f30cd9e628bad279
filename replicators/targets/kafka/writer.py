"""The Kafka target: every change is a message.

The changes of a key are on one partition, in order. A batch that was sent and not recorded is sent
again from its begin, so a message may come twice, but no version of a row is first seen after a
later one. A topic of state says which replicator's table a topic belongs to.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from dataclasses import replace
from functools import partial

from replicators.connectors import files
from replicators.connectors.feed.described import schema_message
from replicators.connectors.feed.messages import (
    MESSAGES,
    Encoder,
    encoder,
    not_before,
    resolved_value,
)
from replicators.connectors.feed.registry import ids_of
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import ChangeBatch, RefusedRow, Resolved, TargetTable
from replicators.connectors.tasks import Tasks
from replicators.targets.kafka.encoding import Encoding, Made, Work, routed, works, write_messages
from replicators.targets.kafka.errors import Heard, translated
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.quarantine import Quarantine, folder_of
from replicators.targets.kafka.sending import (
    TASKS,
    Bucket,
    Headers,
    Sender,
    again_where_lost,
    send_bucket,
)
from replicators.targets.kafka.topics import (
    Claim,
    Topic,
    Topics,
    claim_key,
    claim_value,
    topic_name,
)

logger = logging.getLogger("replicator.kafka")
ROWS_HERE = 5_000
"""Up to this many rows, this process sends the messages itself: a job would cost more."""
KNOWN_SECONDS = 60.0
"""After so long, the brokers are asked again how many partitions a topic has."""
KNOWN_WAITING_SECONDS = 5.0
"""The same where messages wait for the topic to take larger ones."""


class KafkaSink:
    """Writes to one cluster."""

    def __init__(self, params: KafkaParams, tasks: Tasks) -> None:
        self._params, self._tasks = params, tasks
        self._heard = Heard()
        self._topics = Topics(params, self._heard)
        self._sender = Sender(params, self._heard)
        self._lock = threading.Lock()
        self._claims: dict[str, Claim] | None = None
        self._known: dict[str, tuple[float, Topic]] = {}
        self._waiting: dict[TableId, Quarantine] = {}
        self._listed: dict[TableId, int] = {}

    def names(self, table: TableId) -> tuple[str, ...]:
        """The topic."""
        return (topic_name(self._params, table),)

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """Claim the topic. It is made if it does not exist and that is allowed."""
        name = topic_name(self._params, table.source)
        with translated(table.source, name, self._heard):
            claims = self._read_claims(again=True)
            for own in self._topics.own:
                if self._topics.find(own) is None:
                    self._topics.make(own)
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
            self._quarantine(table.source).clear()
            self._write(name, table.source, claim)

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Send the batch. Returns the number of messages' rows."""
        name = topic_name(self._params, table.source)
        with translated(table.source, name, self._heard):
            claim = self._claim(table, name)
            if not batch.lanes:
                return 0
            claim = self._announced(table.source, batch, claim, name)
            again_where_lost(lambda: self._try(table, batch, claim, name))
        return sum(lane.rows for lane in batch.lanes)

    def _announced(self, table: TableId, batch: ChangeBatch, claim: Claim, name: str) -> Claim:
        """The claim, once the topic of schemas has the batch's schema."""
        if not self._topics.schemas:
            return claim
        tell = partial(schema_message, batch.schema, self._params.feed, topic=name)
        digest = hashlib.sha256(b"".join(tell(after=0))).hexdigest()[:32]
        if digest == claim.schema:
            return claim
        key, value = tell(after=batch.after)
        headers: Headers = [("op", b"schema"), ("copy", b"%d" % claim.copy)]
        self._sender.put(self._topics.schemas, key, value, range(1), headers)
        fresh = replace(claim, schema=digest)
        self._write(name, table, fresh)
        return fresh

    def _try(self, table: TargetTable, batch: ChangeBatch, claim: Claim, name: str) -> None:
        waiting = self._quarantine(table.source)
        try:
            waiting.start(batch)
            topic = self._topic(name, waiting)
            self._replay(table.source, topic, claim, batch.resolved_at)
            self._deliver(table, batch, claim, topic)
        except BaseException:
            waiting.failed()
            self._known.pop(name, None)
            raise

    def _deliver(self, table: TargetTable, batch: ChangeBatch, claim: Claim, topic: Topic) -> None:
        waiting = self._quarantine(table.source)
        known = waiting.messages
        work = Work(
            batch.lanes, self._encoder(batch.schema, topic), topic,
            max(batch.resolved_at, claim.resolved), waiting.keys,
        )  # fmt: skip
        headers = self._constants(table.source, claim)
        asides = [waiting.path(batch, lane.number) for lane in batch.lanes]
        if sum(lane.rows for lane in batch.lanes) <= ROWS_HERE:
            encoding = Encoding(replace(work, aside=asides[0]))
            self._sender.send(topic.name, encoding, headers)
            made = [encoding.made]
        else:
            made = self._send_many(work, asides, headers)
        if any(one.waiting or one.truncated >= 0 for one in made):
            waiting.added(max(one.truncated for one in made))
        if more := waiting.messages - known:
            self._warn(table.source, topic, more, waiting.messages)

    def _send_many(self, work: Work, asides: list[str], headers: Headers) -> list[Made]:
        """Encode in tasks, then send in tasks. Where messages are found that are too large, their
        keys wait in all lanes, so all are encoded again."""
        folder = f"{self._tasks.folder.rstrip('/')}/kafka-{uuid.uuid4().hex}"
        files.make_folder(folder)
        try:
            buckets = min(work.topic.partitions, TASKS)
            parts = works(work, folder, buckets, asides)
            made = self._tasks.map(write_messages, parts)
            held = work.held.union(*(one.held for one in made))
            if held != work.held:
                parts = works(replace(work, held=held), folder, buckets, asides)
                made = self._tasks.map(write_messages, parts)
            ways = [
                Bucket(self._params, work.topic.name, tuple(p.paths[n] for p in parts), headers)
                for n in range(buckets)
            ]
            self._tasks.map(send_bucket, ways)
        finally:
            files.remove_folder(folder)
        return made

    def _replay(self, table: TableId, topic: Topic, claim: Claim, floor: float) -> None:
        """Send what waits of keys whose messages the topic takes by now. They count as changes of
        the last resolved time, so that nothing older follows it."""
        waiting = self._quarantine(table)
        if not waiting.has_ready(topic.limit):
            return
        floor = max(floor, claim.resolved)
        made = (
            routed(not_before(part.select(MESSAGES.names), floor), topic.partitions)
            for part in waiting.ready(topic.limit)
        )
        rows = self._sender.send(topic.name, made, self._constants(table, claim))
        waiting.sent(topic.limit)
        logger.info(
            "Sent %d messages from quarantine, %d are left",
            rows,
            waiting.messages,
            extra={"table": str(table)},
        )

    def _quarantine(self, table: TableId) -> Quarantine:
        if table not in self._waiting:
            self._waiting[table] = Quarantine(folder_of(self._tasks.folder, table))
        return self._waiting[table]

    def _warn(self, table: TableId, topic: Topic, more: int, all_: int) -> None:
        logger.warning(
            "Messages quarantined: %d, now %d. They or earlier ones of their keys are larger than "
            "the topic's max.message.bytes, which is %d.",
            more,
            all_,
            topic.limit,
            extra={"table": str(table)},
        )

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

    def refused(self, table: TargetTable, limit: int) -> list[RefusedRow] | None:
        """The first messages that wait."""
        waiting = self._quarantine(table.source)
        if self._listed.get(table.source) == waiting.looks:
            return None
        found: list[RefusedRow] = []
        if waiting.messages:
            name = topic_name(self._params, table.source)
            with translated(table.source, name, self._heard):
                found = waiting.listed(self._topic(name, waiting).limit, limit)
        self._listed[table.source] = waiting.looks
        return found

    def replay(self, table: TargetTable) -> None:
        """Ask what the topic takes now, and send what waits of keys whose messages fit."""
        waiting = self._quarantine(table.source)
        if not waiting.messages:
            return
        name = topic_name(self._params, table.source)
        with translated(table.source, name, self._heard):
            claim = self._claim(table, name)
            self._known.pop(name, None)
            topic = self._topic(name, waiting)
            again_where_lost(lambda: self._replay(table.source, topic, claim, 0.0))

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Tell every partition. The time is recorded first, so it never goes back."""
        if not self._params.resolved:
            return
        name = topic_name(self._params, table.source)
        with translated(table.source, name, self._heard):
            claim = self._claim(table, name)
            waiting = self._quarantine(table.source)
            if waiting.messages:
                topic = self._topic(name, waiting)
                again_where_lost(lambda: self._replay(table.source, topic, claim, 0.0))
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
        with translated(table.source, name, self._heard):
            claim = self._read_claims(again=True).get(claim_key(name, table.source))
            if claim is None or claim.replicator != table.replicator:
                return
            if claim.is_made and not self._params.topic:
                self._topics.remove(name)
            self._known.pop(name, None)
            self._quarantine(table.source).clear()
            self._write(name, table.source, None)

    def _topic(self, name: str, waiting: Quarantine | None = None) -> Topic:
        at, known = self._known.get(name, (0.0, None))
        seconds = KNOWN_WAITING_SECONDS if waiting and waiting.messages else KNOWN_SECONDS
        if known is None or time.monotonic() - at > seconds:
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
