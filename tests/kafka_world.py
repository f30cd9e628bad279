"""Reads topics as a consumer does, and says whether the promises of a feed are kept in them. A
world whose target is topics."""

from __future__ import annotations

import base64
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness import World, until

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Told:
    """A message as a consumer gets it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, str]

    @property
    def op(self) -> str:
        """What happened; `resolved` for a mark."""
        return self.headers["op"]

    @property
    def sequence(self) -> int:
        """The change's place among all."""
        return int(self.headers["sequence"])

    @property
    def at(self) -> float:
        """The commit time that the message says, or a mark's time (seconds)."""
        if self.op == "resolved":
            return datetime.fromisoformat(json.loads(self.value or b"")["resolved"]).timestamp()
        return int(self.headers["committed_at"]) / 1e6

    @property
    def json(self) -> Any:
        """The value."""
        return None if self.value is None else json.loads(self.value)


def partitions(address: str, topic: str) -> int:
    """How many partitions a topic has; 0 where there is none."""
    found = AdminClient({"bootstrap.servers": address}).list_topics(topic, timeout=30).topics[topic]
    return 0 if found.error else len(found.partitions)


def consumed(address: str, topic: str) -> list[Told]:
    """Everything of a topic, in the order of each partition."""
    count = partitions(address, topic)
    if not count:
        return []
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "tests", "fetch.wait.max.ms": 50}
    )
    try:
        places = [TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(count)]
        ends = {p.partition: consumer.get_watermark_offsets(p, timeout=30)[1] for p in places}
        consumer.assign(places)
        found: list[Told] = []
        late = time.monotonic() + SECONDS
        while sum(ends.values()) > len(found):
            assert time.monotonic() < late, f"{len(found)} of {ends} messages came"
            for m in consumer.consume(5000, 0.1):
                assert m.error() is None, m.error()
                headers = {k: _text(v) for k, v in m.headers() or []}
                place, offset = m.partition() or 0, m.offset() or 0
                found.append(Told(place, offset, _bytes(m.key()), _bytes(m.value()), headers))
        return found
    finally:
        consumer.close()


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _text(value: str | bytes | None) -> str:
    return (_bytes(value) or b"").decode()


def faults(messages: Iterable[Told], *, may_repeat: bool) -> list[str]:
    """Every promise that the messages of one topic break. A key's changes are on one partition. No
    change is first seen after a later one of its key. Marks do not go back, and nothing that is
    new and older follows one. A change comes twice only after a crash."""
    found: list[str] = []
    place: dict[tuple[str, bytes], int] = {}
    last: dict[tuple[str, bytes], int] = defaultdict(int)
    seen: set[tuple[Any, ...]] = set()
    marks: dict[int, float] = defaultdict(float)
    for told in messages:
        if told.op == "resolved":
            if told.at < marks[told.partition]:
                found.append(f"partition {told.partition}: the mark {told.at} goes back")
            marks[told.partition] = told.at
            continue
        copy = told.headers["copy"]
        one = (copy, told.partition, told.sequence, told.op, told.key, told.value)
        if one in seen:
            if not may_repeat:
                found.append(f"{told} came twice")
            continue
        seen.add(one)
        if told.at < marks[told.partition]:
            found.append(f"{told} follows the mark {marks[told.partition]}")
        if told.key is None:
            continue
        key = (copy, told.key)
        if place.setdefault(key, told.partition) != told.partition:
            found.append(f"{told} is not on partition {place[key]}")
        if told.sequence < last[key]:
            found.append(f"{told} comes after {last[key]}")
        last[key] = told.sequence
    return found


def whole_copy(messages: list[Told]) -> list[Told]:
    """The last copy of which every partition was told a mark: its messages up to the oldest of the
    last marks, in order, each once."""
    marked = [int(m.headers["copy"]) for m in messages if m.op == "resolved"]
    if not marked:
        return []
    copy = max(marked)
    mine = [m for m in messages if int(m.headers["copy"]) == copy]
    upto = max(m.at for m in mine if m.op == "resolved")
    found: dict[tuple[Any, ...], Told] = {}
    for told in mine:
        if told.op != "resolved" and told.at < upto:
            key = None if told.op == "truncate" else told.key
            found.setdefault((told.sequence, told.op, key, told.value is None), told)
    return sorted(found.values(), key=lambda m: (m.sequence, m.op, m.key or b""))


def rows(messages: Iterable[Told]) -> dict[bytes, Any]:
    """The table's rows after these messages of the envelope `none`, by key; each change once. A
    value that was not sent is the one that the row had, also where its key changed."""
    found: dict[bytes, Any] = {}
    gone: tuple[int, Any] = (0, None)
    for told in sorted(messages, key=lambda m: (m.sequence if m.op != "resolved" else 0, m.op)):
        key = told.key or b""
        if told.op == "resolved":
            continue
        if told.op == "truncate":
            found.clear()
        elif told.value is None:
            gone = told.sequence, found.pop(key, None)
        else:
            row = told.json
            old = found.get(key) or (gone[1] if gone[0] == told.sequence else None)
            for name in row.pop("_unsent", ()):
                assert old is not None and name in old, "an unsent value that nobody has"
                row[name] = old[name]
            found[key] = row
    return found


VALUES: dict[str, Callable[[Any], Any]] = {
    "price": Decimal,
    "at": datetime.fromisoformat,
    "wall": datetime.fromisoformat,
    "day": date.fromisoformat,
    "raw": base64.b64decode,
    "doc": json.dumps,
}
"""How the source has values of the shop's columns that JSON writes in another form."""


class KafkaWorld(World):
    """On Spark, in JSON with the envelope `none`. `target` has the broker's address."""

    def target_params(self) -> tuple[str, dict[str, Any]]:
        said = {"topic_prefix": f"{self.folder.name}.", "partitions": 3, "truncates": True}
        return "kafka", {**said, **self.target}

    def messages(self, name: str) -> list[Told]:
        """Everything in a table's topic."""
        _, params = self.target_params()
        return consumed(params["servers"], f"{params['topic_prefix']}{self.schema}.{name}")

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        return [
            {c: v if v is None or c not in VALUES else VALUES[c](v) for c, v in row.items()}
            for row in rows(whole_copy(self.messages(name))).values()
        ]

    def assert_equal(self, *names: str) -> None:
        """Once every partition was told that everything committed by now was sent."""
        self.settle(*names)
        ((now,),) = self.database.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        for name in names or self.tables:
            said = f"the partitions of {name} are told a time after {now}"
            self.until(lambda name=name: self._is_told(name, now), said)  # type: ignore[misc]
        super().assert_equal(*names)

    def told(self, name: str) -> float:
        """The time that every partition was told; 0 before the first."""
        _, params = self.target_params()
        marks: dict[int, float] = {}
        for told in self.messages(name):
            if told.op == "resolved":
                marks[told.partition] = told.at
        return min(marks.values()) if len(marks) == params["partitions"] else 0.0

    def _is_told(self, name: str, at: float) -> bool:
        return self.row(name).resolved_at > at and self.told(name) > at

    def faults(self, *, may_repeat: bool) -> list[str]:
        """Every promise that a topic breaks."""
        return [f for n in self.tables for f in faults(self.messages(n), may_repeat=may_repeat)]

    def killed_at(self, failpoint: str) -> None:
        """Wait until the run has killed itself there, and end it as the supervisor does."""
        child = self.child
        assert child is not None
        until(child.is_dead, f"the run dies at {failpoint}")
        assert self.flag(failpoint).read_text() == str(child.pid)
        child.end()


class LocalKafkaWorld(KafkaWorld):
    """Its runs need no JVM."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")
