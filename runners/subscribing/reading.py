"""What a subscriber's requests get: a question, and its answer in one of the forms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from replicators.connectors.feed.options import FeedOptions
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.pulling import PulledFeed
from replicators.invalid import InvalidConfig
from runners.models import Table
from runners.subscribers import Subscriber
from runners.subscribing import lines, waiting
from runners.subscribing.changes import Room, TableNews, news
from runners.subscribing.checkpoints import Place, checkpoint_parse, checkpoint_text
from runners.subscribing.feeds import again, feed_of, kept_table
from runners.subscribing.services import checkpoint_record, places_of, seen, tables_of
from runners.subscribing.snapshot import Folded, snapshot

WAIT_MOST = 60.0
ROWS_DEFAULT, ROWS_MOST = 10_000, 100_000
EVENTS_SECONDS = 300.0
"""A stream of events ends after this time; a browser comes back by itself."""
ALIVE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Question:
    """A subscriber's question: of which tables, and from where. `places` has every table of the
    subscriber that has a place."""

    subscriber: Subscriber
    only: TableId | None
    places: dict[int, Place]
    limit: int
    is_arrow: bool = False

    @property
    def tables(self) -> list[Table]:
        """The tables that are asked for, as they are now."""
        found = tables_of(self.subscriber)
        if self.only is None:
            return found
        return [t for t in found if (t.schema_name, t.name) == (self.only.schema, self.only.name)]

    @property
    def named(self) -> dict[int, Place]:
        """The places of the tables that are asked for."""
        mine = {t.pk for t in self.tables}
        return {pk: place for pk, place in self.places.items() if pk in mine}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question, and the checkpoint after it."""

    question: Question
    news: list[TableNews]
    checkpoint: str
    has_more: bool = False
    version: waiting.Version = field(default=())

    @property
    def is_new(self) -> bool:
        return any(n.is_new for n in self.news)


def question(
    subscriber: Subscriber, *, schema: str, table: str, checkpoint: str, limit: int,
    is_arrow: bool = False,
) -> Question:  # fmt: skip
    """A subscriber's question. Its checkpoint is recorded; without one it goes on from the recorded
    one. InvalidConfig, `Table.DoesNotExist`."""
    tables = tables_of(subscriber)
    only = None
    if schema or table:
        only = TableId(schema, table)
        if (schema, table) not in {(t.schema_name, t.name) for t in tables}:
            raise Table.DoesNotExist
    elif is_arrow:
        raise InvalidConfig({"encoding": "arrow is of one table only: name schema and table"})
    given = _parsed(checkpoint, tables) if checkpoint else {}
    if given:
        checkpoint_record(subscriber, {t: given[t.pk] for t in tables if t.pk in given})
    seen(subscriber)
    return Question(subscriber, only, {**places_of(subscriber), **given}, limit, is_arrow)


def _parsed(checkpoint: str, tables: list[Table]) -> dict[int, Place]:
    """The places in a checkpoint, of the tables that are still there."""
    try:
        found = checkpoint_parse(checkpoint)
    except ValueError as err:
        raise InvalidConfig({"checkpoint": str(err)}) from err
    mine = {t.pk for t in tables}
    return {pk: place for pk, place in found.items() if pk in mine}


def answer(asked: Question, *, wait: float = 0.0) -> Found:
    """What is new. Where nothing is, it waits; where too many wait already, it answers at once.
    InvalidConfig, ReplicationError."""
    feed, until = feed_of(asked.subscriber.replicator), time.monotonic() + wait
    found = look(feed, asked)
    if found.is_new or wait <= 0:
        return found
    with waiting.slot() as has_slot:
        while has_slot and not found.is_new and (left := until - time.monotonic()) > 0:
            waiting.let_go()
            waiting.WAITER.wait(asked.subscriber.replicator_id, found.version, left)
            found = look(feed, asked)
    return found


def look(feed: PulledFeed, asked: Question) -> Found:
    """What is new now."""
    pk = asked.subscriber.replicator_id
    version = waiting.versions([pk]).get(pk, ())
    tables = asked.tables

    def read() -> list[TableNews]:
        room = Room(asked.limit, is_one_schema=asked.is_arrow)
        return news(feed, asked.subscriber, tables, asked.places, room)

    try:
        found = again(read)
    except ValueError as err:
        raise InvalidConfig({"ranges": str(err)}) from err
    has_more = any(n.has_more for n in found)
    return Found(asked, found, lines.checkpoint_of(found, asked.named), has_more, version)


def as_lines(found: Found, record: str) -> bytes:
    """The answer as JSON lines."""
    options = lines.options_of(record)
    body = [line for one in found.news for line in lines.table_lines(one, options)]
    return b"".join([*body, lines.end_line(found.checkpoint, has_more=found.has_more)])


def as_arrow(found: Found) -> tuple[bytes, dict[str, str]]:
    """The answer about one table as an Arrow stream, and its headers. ReplicationError where a
    snapshot is needed."""
    headers = {"X-Checkpoint": found.checkpoint, "X-Has-More": str(found.has_more).lower()}
    if not found.news:
        (table,) = found.question.tables
        raise ReplicationError("subscriber:not-copied", table=_name(table))
    one = found.news[0]
    if one.problem:
        raise ReplicationError(one.problem, table=one.name)
    if one.resolved_at:
        headers["X-Resolved-At"] = lines.iso(one.resolved_at)
    if not one.rows:
        return b"".join(lines.arrow_stream(pa.schema([]), ())), headers
    schema = one.rows[0][0]
    rows = (lines.arrow_rows(schema, batch) for _, batch in one.rows)
    return b"".join(lines.arrow_stream(lines.arrow_schema(schema), rows)), headers


def events(asked: Question, record: str) -> Iterator[bytes]:
    """The changes as they come, as server-sent events. Where too many wait already, it ends at once
    and says when to come back."""
    feed, options = feed_of(asked.subscriber.replicator), lines.options_of(record)
    with waiting.slot() as has_slot:
        if has_slot:
            yield from _stream(feed, asked, options)
        else:
            yield b"retry: 5000\n: too many wait\n\n"


def _stream(feed: PulledFeed, asked: Question, options: FeedOptions) -> Iterator[bytes]:
    until, told = time.monotonic() + EVENTS_SECONDS, set()
    yield b": connected\n\n"
    while time.monotonic() < until:
        found = look(feed, asked)
        for one in found.news:
            if (one.table.pk, one.problem, one.resolved_at) not in told:
                told.add((one.table.pk, one.problem, one.resolved_at))
                for line in lines.notes(one) if not one.rows else ():
                    yield lines.event(line)
            for schema, batch in one.rows:
                texts = lines.change_lines(schema, batch, one.name, options).to_pylist()
                yield b"".join(lines.event(text.encode()) for text in texts)
        if any(n.rows for n in found.news):
            end = lines.end_line(found.checkpoint, has_more=found.has_more)
            yield lines.event(end, found.checkpoint)
        places = {**asked.places, **{n.table.pk: n.place for n in found.news}}
        asked = Question(asked.subscriber, asked.only, places, asked.limit)
        if not found.has_more:
            yield b": alive\n\n"
            waiting.let_go()
            waiting.WAITER.wait(asked.subscriber.replicator_id, found.version, ALIVE_SECONDS)


@dataclass(frozen=True, slots=True)
class SnapshotFound:
    """A snapshot that was asked for: its table, its place, and the first rows that were read. So a
    refusal comes before the first byte."""

    table: Table
    place: Place
    first: Folded | None
    rest: Iterator[Folded]

    @property
    def checkpoint(self) -> str:
        """Where the table's changes go on."""
        return checkpoint_text({self.table.pk: self.place})

    @property
    def _portions(self) -> Iterator[Folded]:
        if self.first is not None:
            yield self.first
            yield from self.rest

    def as_lines(self, record: str) -> Iterator[bytes]:
        """The rows as JSON lines."""
        options, name = lines.options_of(record), _name(self.table)
        yield lines.snapshot_line(name, self.checkpoint)
        for one in self._portions:
            rows = one.as_read(self.place.sequence)
            for batch in rows.to_batches(ROWS_DEFAULT):
                yield lines.joined(lines.change_lines(one.schema, batch, name, options))
        yield lines.end_line(self.checkpoint, has_more=False)

    def as_arrow(self) -> tuple[Iterator[bytes], dict[str, str]]:
        """The rows as an Arrow stream, and its headers."""
        headers = {"X-Checkpoint": self.checkpoint}
        if self.first is None:
            return lines.arrow_stream(pa.schema([]), ()), headers
        schema = self.first.schema
        rows = (b for one in self._portions for b in one.rows.to_batches(ROWS_MOST))
        return lines.arrow_stream(schema.arrow_schema(), rows), headers


def snapshot_asked(
    subscriber: Subscriber, *, schema: str, name: str, checkpoint: str
) -> SnapshotFound:
    """The rows of a table, by default the newest. `Table.DoesNotExist`, InvalidConfig,
    ReplicationError."""
    tables = tables_of(subscriber)
    table = next((t for t in tables if (t.schema_name, t.name) == (schema, name)), None)
    if table is None:
        raise Table.DoesNotExist
    seen(subscriber)
    if not table.is_snapshot_done:
        raise ReplicationError("subscriber:not-copied", table=_name(table))
    newest = Place(table.generation, table.merged_sequence)
    asked = _parsed(checkpoint, tables).get(table.pk) if checkpoint else newest
    if checkpoint and asked is None:
        raise InvalidConfig({"checkpoint": "must be of this table"})
    feed, place = feed_of(subscriber.replicator), asked or newest

    def begin() -> SnapshotFound:
        kept = feed.kept(kept_table(table), table.merged_sequence)
        is_there = kept is not None and place.generation == table.generation
        if kept is None or not is_there or not kept.base <= place.sequence <= newest.sequence:
            raise ReplicationError("subscriber:too-early", table=_name(table))
        rows = snapshot(feed, _name(table), kept, place.sequence)
        return SnapshotFound(table, place, next(rows, None), rows)

    return again(begin)


def _name(table: Table) -> TableId:
    return TableId(table.schema_name, table.name)
