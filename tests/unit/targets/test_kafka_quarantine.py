"""What waits because it is larger than its topic takes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from replicators.connectors.feed.messages import MESSAGES, not_before, resolved_value
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import BatchKind, ChangeBatch, TargetTable
from replicators.targets.kafka.params import KafkaParams
from replicators.targets.kafka.quarantine import OVERHEAD, Quarantine, Sieve, Waiting, _shown
from replicators.targets.kafka.topics import Claim, Topic
from replicators.targets.kafka.writer import KafkaSink

LIMIT = 1000
AT = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = TableSchema(TableId("s", "t"), (), (), ())
Row = tuple[int, str | None, int]


def batch(*rows: Row, op: Op = Op.UPDATE) -> pa.RecordBatch:
    """Messages: sequence, key, and the bytes of the value."""
    found = [
        {
            "_sequence": sequence,
            "_op": int(op),
            "_committed_at": AT,
            "_transaction": 1,
            "_part": 0,
            "key": None if key is None else key.encode(),
            "value": b"x" * size,
        }
        for sequence, key, size in rows
    ]
    return pa.RecordBatch.from_pylist(found, MESSAGES)


def sequences(made: pa.RecordBatch | None) -> list[int]:
    """The messages' numbers."""
    return [] if made is None else [int(n) for n in made.column("_sequence").to_pylist()]


def changes(after: int, upto: int) -> ChangeBatch:
    """A batch without rows of its own."""
    return ChangeBatch(BatchKind.CHANGES, SCHEMA, after, upto, ())


def put(quarantine: Quarantine, after: int, *rows: Row, limit: int = LIMIT) -> list[int]:
    """A batch of these messages: what may be sent."""
    whole = changes(after, rows[-1][0])
    quarantine.start(whole)
    sieve, waiting = Sieve(limit, quarantine.keys), Waiting()
    fit, apart = sieve.divide(batch(*rows))
    waiting.add(apart)
    waiting.publish(quarantine.path(whole, 0))
    quarantine.added(sieve.truncated)
    return sequences(fit)


def ready(quarantine: Quarantine, limit: int) -> list[int]:
    """What would be sent now."""
    return [n for part in quarantine.ready(limit) for n in sequences(part)]


def test_a_large_message_and_the_later_ones_of_its_key_wait() -> None:
    """Guards the order of a key: fails where a later message that fits overtakes."""
    sieve = Sieve(LIMIT, frozenset())
    fit, apart = sieve.divide(batch((1, "a", 10), (2, "b", LIMIT - OVERHEAD - 1), (3, None, LIMIT)))
    assert (sequences(fit), sequences(apart)) == ([1, 2], [3])
    fit, apart = sieve.divide(batch((4, "b", LIMIT), (5, "a", 10)))
    assert (sequences(fit), sequences(apart), sieve.held) == ([5], [4], {b"b"})
    fit, apart = sieve.divide(batch((6, "b", 1), (7, "c", 1), (8, None, 1)))
    assert (sequences(fit), sequences(apart), sieve.waiting) == ([7, 8], [6], 3)


def test_what_waits_outlives_the_process_and_goes_key_by_key(tmp_path: Path) -> None:
    """Guards the files: another process knows the keys, and sends a key's messages once all of them
    fit, in order."""
    folder = str(tmp_path / "waits")
    assert put(Quarantine(folder), 0, (1, "a", 2000), (2, "b", 5000), (3, "c", 1)) == [3]
    again = Quarantine(folder)
    assert put(again, 3, (4, "a", 1), (5, "b", 1), (6, "d", 1)) == [6]
    assert (again.messages, again.keys) == (4, {b"a", b"b"})
    assert not again.has_ready(LIMIT)
    assert again.has_ready(3000) and ready(again, 3000) == [1, 4]
    again.sent(3000)
    assert put(again, 6, (7, "a", 1), (8, "b", 1)) == [7]
    third = Quarantine(folder)
    assert ready(third, 9000) == [2, 5, 8]
    third.sent(9000)
    assert (third.messages, Quarantine(folder).messages) == (0, 0)


def test_a_batch_that_comes_again_replaces_what_waited_of_it(tmp_path: Path) -> None:
    """Guards a crash between delivery and record: the second try may end elsewhere, and the topic
    may take more by then."""
    folder = str(tmp_path / "waits")
    first = Quarantine(folder)
    put(first, 0, (1, "a", 2000))
    put(first, 1, (2, "b", 2000), (3, "c", 2000))
    again = Quarantine(folder)
    assert put(again, 1, (2, "b", 2000), limit=3000) == [2]
    assert again.keys == {b"a"}
    again.failed()
    put(again, 0, (1, "a", 2000), limit=3000)
    assert again.messages == 0


def test_a_truncate_ends_what_waited_before_it(tmp_path: Path) -> None:
    """Guards the rows: one that a TRUNCATE removed must not come back later."""
    quarantine = Quarantine(str(tmp_path / "waits"))
    put(quarantine, 0, (1, "a", 2000), (2, "b", 2000))
    sieve = Sieve(LIMIT, quarantine.keys)
    fit, _ = sieve.divide(batch((3, None, 1), op=Op.TRUNCATE))
    assert sequences(fit) == [3] and sieve.truncated == 3
    quarantine.added(sieve.truncated)
    assert quarantine.messages == 0 and not quarantine.keys
    quarantine.clear()


def test_messages_that_waited_count_as_changes_of_the_last_mark() -> None:
    """Guards that nothing older follows a resolved message."""
    found = not_before(batch((1, "a", 1), (2, "b", 1)), AT.timestamp() + 5)
    assert [v.timestamp() for v in found.column("_committed_at").to_pylist()] == [
        AT.timestamp() + 5
    ] * 2
    assert not_before(batch((1, "a", 1)), 0.0).equals(batch((1, "a", 1)))


def test_both_say_the_same_of_a_time_between_two_microseconds() -> None:
    """Guards `_microseconds`: rounded twice, the mark was a microsecond later than the message."""
    at = 1795668091.4039526
    found = not_before(batch((1, "a", 1)), at).column("_committed_at").to_pylist()[0]
    assert found.isoformat(timespec="microseconds").replace("+00:00", "Z") in str(
        resolved_value(at)
    )


def test_what_waits_is_listed_with_its_key_and_why(tmp_path: Path) -> None:
    """Guards the page: a person must see which keys wait, and what the topic would have to take.
    A message that comes twice is one line; a key in Avro is shown by its digits."""
    quarantine = Quarantine(str(tmp_path))
    put(quarantine, 0, (1, "[7]", LIMIT), (2, "[7]", 10), (3, "[8]", 10))
    found = quarantine.listed(LIMIT, 10)
    assert [r.key for r in found] == ['{"key": [7]}'] * 2
    assert {r.reason for r in found} == {
        f"The message has {LIMIT + OVERHEAD + 3:,} bytes, and the topic takes {LIMIT:,}.",
        "It waits behind another message of its key, so that their order stays.",
    }
    assert all(r.number < 0 for r in found) and len({r.number for r in found}) == 2
    assert len(quarantine.listed(LIMIT, 1)) == 1
    assert _shown(b"\x00\xff") == '{"key": "00ff"}' and _shown(None) == '{"key": null}'


class Cluster(KafkaSink):
    """A sink whose topic takes `limit` bytes, and which writes down what it sends."""

    def __init__(self, folder: Path, limit: int) -> None:
        params = parse(KafkaParams, {"servers": "localhost:9"})
        super().__init__(params, cast(Any, SimpleNamespace(folder=str(folder))))
        self.limit = limit
        self.sent: list[int] = []
        self._sender = cast(Any, SimpleNamespace(send=self._take))

    def _take(self, name: str, made: Iterable[pa.RecordBatch], headers: Any) -> int:
        for part in made:
            self.sent += sequences(part)
        return len(self.sent)

    def _topic(self, name: str, waiting: Quarantine | None = None) -> Topic:
        return cast(Topic, SimpleNamespace(name=name, limit=self.limit, partitions=1))

    def _claim(self, table: TargetTable, name: str) -> Claim:
        return Claim("r1", 1, 1)


def test_a_person_sends_what_waits_again_once_the_topic_takes_it(tmp_path: Path) -> None:
    """Guards `RejectsRows` for Kafka: the list is given once for each change, and is empty after
    all messages were sent; while the topic takes no more than before, they stay."""
    table = TargetTable(SCHEMA.id, "r1", 1)
    sink = Cluster(tmp_path, LIMIT)
    put(sink._quarantine(table.source), 0, (1, "[7]", LIMIT), (2, "[7]", 10))
    assert [r.key for r in sink.refused(table, 10) or ()] == ['{"key": [7]}'] * 2
    assert sink.refused(table, 10) is None
    sink.replay(table)
    assert sink.sent == [] and sink.refused(table, 10) is None
    sink.limit = 10 * LIMIT
    sink.replay(table)
    assert sink.sent == [1, 2] and sink.refused(table, 10) == []
    assert Cluster(tmp_path, LIMIT).refused(table, 10) == [], "a run's first call gives a list"
