"""Reads topics as a consumer does, and says whether the promises of a feed are kept in them."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

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
            from datetime import datetime

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
    """The table's rows after these messages of the envelope `none`, by key."""
    found: dict[bytes, Any] = {}
    for told in sorted(messages, key=lambda m: (m.sequence, m.offset)):
        if told.op == "resolved":
            continue
        if told.op == "truncate":
            found.clear()
        elif told.value is None:
            found.pop(told.key or b"", None)
        else:
            found[told.key or b""] = told.json
    return found
