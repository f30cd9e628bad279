"""GetChanges: what a subscriber has not read yet, in order of each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.problem import Problem
from replicators.connectors.pulling import Kept, Part, PulledFeed
from runners.models import Table
from runners.subscribers import Subscriber
from runners.subscribing.checkpoints import Place
from runners.subscribing.feeds import listed, rows_of
from runners.subscribing.ranges import in_ranges

BYTES_MOST = 16 << 20
"""Bytes of rows in one answer, about."""
FELL_BEHIND, COPIED_AGAIN = "subscriber:fell-behind", "subscriber:copied-again"
Rows = tuple[TableSchema, pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class TableNews:
    """What is new in a table: rows, then the place after them. `resolved_at`: every change that was
    committed before (seconds since the epoch) is read now; None where more is to come. `problem`:
    why the table can't be read on, such as `subscriber:fell-behind`."""

    table: Table
    place: Place
    rows: list[Rows] = field(default_factory=list)
    resolved_at: float | None = None
    problem: str = ""
    has_more: bool = False

    @property
    def name(self) -> TableId:
        """The table's name."""
        return TableId(self.table.schema_name, self.table.name)

    @property
    def message(self) -> Problem:
        """The problem in words."""
        return Problem.of(self.problem, table=self.name)

    @property
    def is_new(self) -> bool:
        """Whether there is anything that a waiting reader must hear."""
        return bool(self.rows or self.problem)


@dataclass(slots=True)
class Room:
    """How many rows and bytes still fit into the answer. `is_one_schema`: the answer holds rows of
    one schema only."""

    rows: int
    size: int = BYTES_MOST
    is_one_schema: bool = False

    def take(self, batch: pa.RecordBatch) -> None:
        """Use room for these rows."""
        self.rows -= batch.num_rows
        self.size -= batch.nbytes

    @property
    def is_full(self) -> bool:
        """Whether no row fits any more."""
        return self.rows <= 0 or self.size <= 0


def news(
    feed: PulledFeed,
    subscriber: Subscriber,
    tables: Sequence[Table],
    places: Mapping[int, Place],
    room: Room,
) -> list[TableNews]:
    """What is new in each table after its place. OSError."""
    chosen = {(t["schema"], t["name"]): t.get("ranges") or () for t in subscriber.tables}
    found = []
    for table in tables:
        ranges = chosen.get((table.schema_name, table.name), ())
        one = _table_news(feed, table, places.get(table.pk, Place()), ranges, room)
        if one is not None:
            found.append(one)
    return found


def _table_news(
    feed: PulledFeed, table: Table, place: Place, ranges: Sequence[Any], room: Room
) -> TableNews | None:
    if not table.is_snapshot_done:
        return None
    if place.generation != table.generation:
        return TableNews(table, place, problem=COPIED_AGAIN)
    end = Place(table.generation, table.merged_sequence)
    if place >= end:
        return TableNews(table, place, resolved_at=table.resolved_at)
    kept = listed(feed, table)
    if kept is None:
        return None
    if place.sequence < kept.base:
        return TableNews(table, place, problem=FELL_BEHIND)
    return _read(feed, kept, TableNews(table, place), end, ranges, room)


def _read(
    feed: PulledFeed, kept: Kept, found: TableNews, end: Place, ranges: Sequence[Any], room: Room
) -> TableNews:
    """The rows after the place, as many as there is room for."""
    after = found.place.sequence
    for schema, batch in _pieces(feed, kept, after, end.sequence):
        is_other = room.is_one_schema and found.rows and found.rows[-1][0] != schema
        taken = batch.slice(0, 0 if room.is_full or is_other else room.rows)
        if taken.num_rows:
            after = taken.column("_sequence")[-1].as_py()
            wanted = in_ranges(taken, schema, ranges)
            room.take(wanted)
            if wanted.num_rows:
                found.rows.append((schema, wanted))
        if taken.num_rows < batch.num_rows:
            return replace(found, place=Place(end.generation, after), has_more=True)
    return replace(found, place=end, resolved_at=found.table.resolved_at)


def _pieces(feed: PulledFeed, kept: Kept, after: int, upto: int) -> Iterator[Rows]:
    """The rows with `after` < `_sequence` <= `upto`, in order."""
    for part in kept.changes:
        if part.last <= after:
            continue
        schema, batches = rows_of(feed, part)
        for batch in batches:
            some = _between(batch, part, after, upto)
            if some.num_rows:
                yield schema, some
        after = max(after, part.last)


def _between(batch: pa.RecordBatch, part: Part, after: int, upto: int) -> pa.RecordBatch:
    if part.first > after and part.last <= upto:
        return batch
    sequence = batch.column("_sequence")
    return batch.filter(pc.and_(pc.greater(sequence, after), pc.less_equal(sequence, upto)))
