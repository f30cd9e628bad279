"""Two ways to send messages: this process sends few of them itself; Spark's own sink sends many.
Both keep the order of each partition, and leave no gap in it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from replicators.connectors import files
from replicators.connectors.model.changes import Op
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.spark import Session
from replicators.targets.kafka.client import SEND_SECONDS, java_settings, producing
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.topics import Topic

OPERATIONS = [op.name.lower() for op in Op]
_OP_NAMES = [name.encode() for name in OPERATIONS]
TASKS = 8
FRAME = (
    "_sequence bigint, _op tinyint, _committed_at timestamp, _transaction bigint, _part tinyint, "
    "key binary, value binary, partition int"
)
_SPARK_FAULTS = (
    (re.compile(r"RecordTooLarge|MessageSizeTooLarge"), "target:kafka-message-large"),
    (re.compile(r"TopicAuthorization|ClusterAuthorization"), "target:kafka-refused"),
    (re.compile(r"SaslAuthentication|SslAuthentication"), "target:kafka-login"),
    (re.compile(r"UnknownTopicOrPartition|InvalidTopic"), "target:kafka-topic-missing"),
    (re.compile(r"org\.apache\.kafka\.common\.errors"), "target:unreachable"),
)
Headers = list[tuple[str, str | bytes | None]]


class Sender:
    """A producer of this process. It is thrown away after a failure, with all that it holds."""

    def __init__(self, params: KafkaParams) -> None:
        self._params = params
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
        with _Sending(self) as sending:
            for place in places:
                sending.put(topic, key, value, place, headers)

    def producer(self) -> Producer:
        """The producer; made at the first use."""
        with self._lock:
            if self._producer is None:
                self._producer = Producer(producing(self._params))
            return self._producer

    def forget(self, old: Producer) -> None:
        """Throw a producer away."""
        old.purge(in_queue=True, in_flight=True, blocking=False)
        old.poll(0)
        with self._lock:
            if self._producer is old:
                self._producer = None


class _Sending:
    """One batch on its way. It ends when each message is acknowledged, or raises."""

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
                self._producer.poll(0.1)
                continue
            with self._lock:
                self._waiting += 1
            return
        raise KafkaException(self._fault)

    def _told(self, fault: KafkaError | None, _: Any) -> None:
        with self._lock:
            self._waiting -= 1
        if fault is not None and self._fault is None:
            self._fault = fault

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        end = time.monotonic() + SEND_SECONDS + 10
        while kind is None and self._fault is None and self._waiting > 0:
            if time.monotonic() > end:
                self._fault = KafkaError(KafkaError._MSG_TIMED_OUT)
                break
            self._producer.poll(0.05)
        if kind is not None or self._fault is not None:
            self._sender.forget(self._producer)
        if kind is None and self._fault is not None:
            raise KafkaException(self._fault)


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
    spark: Session, params: KafkaParams, topic: Topic, paths: list[str], constants: Headers
) -> None:
    """Send the messages of files. All messages of a partition are sent by one task, in order."""
    frame: Any = files.parquet_frame(spark, paths, FRAME)
    tasks = min(topic.partitions, TASKS)
    names = ", ".join(f"'{name}'" for name in OPERATIONS)
    headers = {
        "transaction": "cast(_transaction as string)",
        "sequence": "cast(_sequence as string)",
        "op": f"element_at(array({names}), _op + 1)",
        "committed_at": "cast(unix_micros(_committed_at) as string)",
        **{name: _literal(value) for name, value in constants},
    }
    structs = ", ".join(
        f"named_struct('key', '{name}', 'value', cast({text} as binary))"
        for name, text in headers.items()
    )
    ordered = frame.repartition(tasks, "partition").sortWithinPartitions("_sequence", "_part")
    rows = ordered.selectExpr("key", "value", "partition", f"array({structs}) AS headers")
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
