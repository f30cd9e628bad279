"""Two ways to send messages: this process sends few of them itself; Spark's own sink sends many.
Both keep the order of each partition, and leave no gap in it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from replicators.connectors.model.changes import Op
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import Session
from replicators.targets.kafka.client import SEND_SECONDS, java_settings, producing
from replicators.targets.kafka.encoding import reading
from replicators.targets.kafka.errors import Heard
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.topics import Topic

OPERATIONS = [op.name.lower() for op in Op]
_OP_NAMES = [name.encode() for name in OPERATIONS]
TASKS = 8
"""So many tasks send at most."""
FRAME = (
    "key binary, value binary, partition int, op tinyint, transaction binary, sequence binary, "
    "committed_at binary"
)
_SPARK_FAULTS = (
    (re.compile(r"RecordTooLarge|MessageSizeTooLarge"), "target:kafka-message-large"),
    (re.compile(r"TopicAuthorization|ClusterAuthorization"), "target:kafka-refused"),
    (re.compile(r"SslAuthentication|SSLHandshake"), "target:kafka-tls"),
    (re.compile(r"SaslAuthentication|UnsupportedSaslMechanism"), "target:kafka-login"),
    (re.compile(r"UnknownTopicOrPartition|InvalidTopic"), "target:kafka-topic-missing"),
    (re.compile(r"org\.apache\.kafka\.common\.errors"), "target:unreachable"),
)
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
    """A producer of this process. It is thrown away after a failure, with all that it holds."""

    def __init__(self, params: KafkaParams, heard: Heard) -> None:
        self._params, self._heard = params, heard
        self._lock = threading.RLock()
        self._producer: Producer | None = None

    def send(self, topic: str, batches: Iterable[pa.RecordBatch], constants: Headers) -> int:
        """Send the messages, and wait until all are acknowledged."""
        rows = 0
        with _Sending(self) as sending:
            for made in batches:
                columns = [made.column(name).to_pylist() for name in ("key", "value", "partition")]
                for key, value, place, headers in zip(*columns, _headers(made), strict=True):
                    sending.put(topic, key, value, place, headers + constants)
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
                self._producer = Producer(producing(self._params, self._heard))
            return self._producer

    def forget(self, old: Producer) -> None:
        """Throw a producer away."""
        old.purge(in_queue=True, in_flight=True, blocking=False)
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
        self._waiting = 0
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
            with self._lock:
                self._waiting += 1
            return
        raise _Stopped

    def _poll(self, seconds: float) -> None:
        """Hear of messages. The end of the producer is raised here, whoever's message it was of."""
        try:
            self._producer.poll(seconds)
        except KafkaException as err:
            self._note(err.args[0])

    def _told(self, fault: KafkaError | None, _: Any) -> None:
        with self._lock:
            self._waiting -= 1
        if fault is not None:
            self._note(fault)

    def _note(self, fault: KafkaError) -> None:
        """Keep the first fault of a message of ours, or else that the producer ended."""
        with self._lock:
            if self._fault is None or self._fault.code() in _LOST:
                self._fault = fault

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        is_ours = kind is None or kind is _Stopped
        end = time.monotonic() + SEND_SECONDS + 10
        while is_ours and self._waiting > 0 and not self._is_explained:
            if time.monotonic() > end:
                self._note(KafkaError(KafkaError._MSG_TIMED_OUT))
                break
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
    def _is_explained(self) -> bool:
        """Whether a message of ours failed by itself."""
        return self._fault is not None and self._fault.code() not in _LOST


class _Stopped(Exception):
    """A message failed, so no more are given to the producer."""


def _headers(made: pa.RecordBatch) -> Iterable[Headers]:
    names = ("_transaction", "_sequence", "_op", "_committed_at")
    columns = [made.column(n).cast(pa.int64()).to_pylist() for n in names]
    return (
        [
            ("transaction", b"%d" % transaction),
            ("sequence", b"%d" % sequence),
            ("op", _OP_NAMES[op]),
            ("committed_at", b"%d" % at),
        ]
        for transaction, sequence, op, at in zip(*columns, strict=True)
    )


def send_by_spark(
    spark: Session,
    params: KafkaParams,
    topic: Topic,
    buckets: Sequence[Sequence[str]],
    constants: Headers,
) -> None:
    """Send the messages of files. A bucket has the messages of some partitions, in order, and one
    task sends them. So nothing is sorted or moved between tasks."""
    names = ", ".join(f"'{name}'" for name in OPERATIONS)
    headers = {
        "transaction": "transaction",
        "sequence": "sequence",
        "op": f"cast(element_at(array({names}), op + 1) as binary)",
        "committed_at": "committed_at",
        **{name: f"cast({_literal(value)} as binary)" for name, value in constants},
    }
    structs = ", ".join(
        f"named_struct('key', '{name}', 'value', {value})" for name, value in headers.items()
    )
    numbers = spark.range(0, len(buckets), 1, len(buckets))
    frame: Any = numbers.mapInArrow(reading(buckets), FRAME)
    rows = frame.selectExpr("key", "value", "partition", f"array({structs}) AS headers")
    writer = rows.write.format("kafka").option("topic", topic.name)
    try:
        writer.options(**java_settings(params)).save()
    except Exception as err:
        for pattern, code in _SPARK_FAULTS:
            if found := pattern.search(str(err)):
                raise ReplicationError(code, topic=topic.name, name_of_error=found.group()) from err
        raise


def _literal(value: str | bytes | None) -> str:
    """A text as Spark SQL writes it."""
    text = value.decode() if isinstance(value, bytes) else value or ""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
