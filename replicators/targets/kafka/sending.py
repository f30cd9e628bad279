"""Sends messages in order, without a gap in a partition: few from the process of the run, many from
tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from replicators.connectors.model.changes import Op
from replicators.targets.kafka.client import SEND_SECONDS, producing
from replicators.targets.kafka.encoding import read_messages
from replicators.targets.kafka.errors import Heard, translated
from replicators.targets.kafka.params import KafkaParams

_OP_NAMES = [op.name.lower().encode() for op in Op]
TASKS = 8
"""So many tasks send at most."""
Headers = list[tuple[str, str | bytes | None]]
R = TypeVar("R")
REPORT_SECONDS = 5.0
"""So long after its end, a producer may report what became of each message."""


_LOST = {
    KafkaError._FATAL,
    KafkaError._GAPLESS_GUARANTEE,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
}
TRIES = 3


class ProducerLost(KafkaException):
    """The producer ended for the fault of another table's messages."""


def again_where_lost(act: Callable[[], R]) -> R:
    """Act, and again with another producer where the one in use was lost."""
    for _ in range(TRIES - 1):
        try:
            return act()
        except ProducerLost:
            continue
    return act()


class Sender:
    """A producer of this process. It is thrown away after a failure, with all that it holds.
    `is_bulk`: it sends one batch of many messages, and nothing else."""

    def __init__(self, params: KafkaParams, heard: Heard, *, is_bulk: bool = False) -> None:
        self._params, self._heard, self.is_bulk = params, heard, is_bulk
        self._lock = threading.RLock()
        self._producer: Producer | None = None

    def send(self, topic: str, batches: Iterable[pa.RecordBatch], constants: Headers) -> int:
        """Send the messages, and wait until all are acknowledged."""
        rows = 0
        with _Sending(self) as sending:
            for made in batches:
                columns = [made.column(name).to_pylist() for name in ("key", "value", "partition")]
                for key, value, place, headers in zip(
                    *columns, _headers(made, constants), strict=True
                ):
                    sending.put(topic, key, value, place, headers)
                rows += made.num_rows
        return rows

    def put(
        self, topic: str, key: bytes | None, value: bytes | None, places: range, headers: Headers
    ) -> None:
        """Send one message to each of these partitions."""

        def act() -> None:
            with _Sending(self) as sending:
                for place in places:
                    sending.put(topic, key, value, place, headers)

        again_where_lost(act)

    def producer(self) -> Producer:
        """The producer; made at the first use."""
        with self._lock:
            if self._producer is None:
                self._producer = Producer(
                    producing(self._params, self._heard, is_bulk=self.is_bulk)
                )
            return self._producer

    def forget(self, old: Producer) -> None:
        """Throw a producer away."""
        old.purge(in_queue=True, in_flight=True, blocking=True)
        old.poll(0)
        with self._lock:
            if self._producer is old:
                self._producer = None


class _Sending:
    """One batch on its way. It ends when each message is acknowledged, or raises. A message that
    fails for good ends its producer, for all tables: the batch of that message raises why, and
    those of others `ProducerLost`."""

    def __init__(self, sender: Sender) -> None:
        self._sender, self._producer = sender, sender.producer()
        self._fault: KafkaError | None = None
        self._given = self._answered = self._done = 0
        self._until = time.monotonic() + SEND_SECONDS
        self._lock = threading.Lock()

    def __enter__(self) -> _Sending:
        return self

    def put(
        self, topic: str, key: bytes | None, value: bytes | None, place: int, headers: Headers
    ) -> None:
        while self._fault is None:
            try:
                self._producer.produce(
                    topic, value, key, place, on_delivery=self._told, headers=headers
                )
            except BufferError:
                self._poll(0.1)
                continue
            except KafkaException as err:
                self._note(err.args[0])
                continue
            self._given += 1
            self._until = time.monotonic() + SEND_SECONDS
            return
        raise _Stopped

    def _poll(self, seconds: float) -> None:
        """Hear of messages. The end of the producer is raised here, whoever's message it was of.
        Where nothing comes forward for long, all is given up at once: if the client gave up single
        messages, later ones could still be sent."""
        try:
            self._producer.poll(seconds)
        except KafkaException as err:
            self._note(err.args[0])
        done = self._given - self._left
        if done != self._done:
            self._done, self._until = done, time.monotonic() + SEND_SECONDS
        elif time.monotonic() > self._until:
            self._note(KafkaError(KafkaError._MSG_TIMED_OUT))

    def _told(self, fault: KafkaError | None, _: Any) -> None:
        with self._lock:
            self._answered += 1
        if fault is not None:
            self._note(fault)

    def _note(self, fault: KafkaError) -> None:
        """Keep the first fault of a message of ours, or else that the producer ended."""
        with self._lock:
            if self._fault is None or self._fault.code() in _LOST:
                self._fault = fault

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        is_ours = kind is None or kind is _Stopped
        end, self._until = float("inf"), time.monotonic() + SEND_SECONDS
        while is_ours and self._left and not self._is_explained and time.monotonic() < end:
            if self._fault is not None:
                end = min(end, time.monotonic() + REPORT_SECONDS)
            self._poll(0.05)
        if not is_ours or self._fault is not None:
            self._sender.forget(self._producer)
        if is_ours and self._fault is not None:
            is_lost = self._fault.code() in _LOST
            raise ProducerLost(self._fault) if is_lost else KafkaException(self._fault)
        return kind is _Stopped

    @property
    def _left(self) -> int:
        """How many messages are not acknowledged. A producer of many reports failures only."""
        return len(self._producer) if self._sender.is_bulk else self._given - self._answered

    @property
    def _is_explained(self) -> bool:
        """Whether a message of ours failed by itself."""
        return self._fault is not None and self._fault.code() not in _LOST


class _Stopped(Exception):
    """A message failed, so no more are given to the producer."""


def _headers(made: pa.RecordBatch, constants: Headers) -> Iterable[Headers]:
    names = ("_transaction", "_sequence", "_committed_at")
    texts = [made.column(n).cast(pa.int64()).cast(pa.string()).cast(pa.binary()) for n in names]
    columns = [text.to_pylist() for text in texts]
    return (
        [
            ("transaction", transaction),
            ("sequence", sequence),
            ("op", _OP_NAMES[op]),
            ("committed_at", at),
            *constants,
        ]
        for transaction, sequence, at, op in zip(
            *columns, made.column("_op").to_pylist(), strict=True
        )
    )


@dataclass(frozen=True, slots=True)
class Bucket:
    """The messages of some partitions, in files. One task sends them, in order."""

    params: KafkaParams
    topic: str
    paths: tuple[str, ...]
    constants: Headers


def send_bucket(bucket: Bucket) -> int:
    """Send the messages with a producer of the task's own."""
    heard = Heard()
    sender = Sender(bucket.params, heard, is_bulk=True)
    with translated(topic=bucket.topic, heard=heard):
        return sender.send(bucket.topic, read_messages(bucket.paths), bucket.constants)
