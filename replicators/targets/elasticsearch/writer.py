"""The elasticsearch target: a `ChangeSink` with a document for each row.

A copy goes into an index of its own. The alias by which people search moves to it in one step, once
the copy is whole: at the first batch of changes, or the first mark. A TRUNCATE makes a new, empty
index too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import (
    BatchKind,
    ChangeBatch,
    Lane,
    RefusedRow,
    Resolved,
    TargetTable,
)
from replicators.connectors.tasks import Tasks
from replicators.targets.elasticsearch.bulk import EXTERNAL, EXTERNAL_GTE, Bulk
from replicators.targets.elasticsearch.client import Search
from replicators.targets.elasticsearch.indexes import Indexes, Meta
from replicators.targets.elasticsearch.lanes import Done, LaneWork, Look, Looking, look, write
from replicators.targets.elasticsearch.naming import alias_of, name_fault
from replicators.targets.elasticsearch.params import ElasticsearchParams
from replicators.targets.elasticsearch.refused import listed, try_again

logger = logging.getLogger("replicator.elasticsearch")
ROWS_HERE = 5_000
"""Up to this many rows, this process writes the documents itself: a task would cost more."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a generation's documents go, as this process knows it."""

    meta: Meta
    is_live: bool


class ElasticsearchSink:
    """Writes to one cluster."""

    def __init__(self, params: ElasticsearchParams, tasks: Tasks) -> None:
        self._params, self._tasks = params, tasks
        self._opened: Search | None = None
        self._places: dict[tuple[TableId, int], Place] = {}
        self._told: set[tuple[TableId, int]] = set()
        """Tables whose refused documents are as `refused` said."""

    def names(self, table: TableId) -> tuple[str, ...]:
        """The name by which the table is searched."""
        return (alias_of(self._params.index, table),)

    def begin(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty index for this generation. Remove earlier ones that never became whole."""
        alias = self._alias(table)
        if fault := name_fault(alias):
            raise ReplicationError(
                "target:index-name", table=table.source, target=alias, reason=fault
            )
        if not schema.key:
            raise ReplicationError("target:index-needs-key", table=table.source)
        self._forget(table.source)
        indexes = self._indexes(table)
        indexes.claim()
        indexes.make(schema)

    def deliver(self, table: TargetTable, batch: ChangeBatch) -> int:
        """Write the batch as documents. Returns the number of rows."""
        try:
            if batch.kind is BatchKind.SNAPSHOT:
                place = self._place(table)
                works = [self._work(table, batch, (lane,), place) for lane in batch.lanes]
                return self._report(table, self._written(works, self._size(batch.lanes)))
            return self._changes(table, batch)
        except BaseException as err:
            self._forget(table.source)
            if isinstance(err, ReplicationError) and err.code == "target:table-missing":
                self._indexes(table).check_missing()
            raise

    def _changes(self, table: TargetTable, batch: ChangeBatch) -> int:
        place = self._live(table)
        place = self._mapped(table, place, batch.schema)
        if not batch.lanes:
            return 0
        size = self._size(batch.lanes)
        seen = self._look(batch, size)
        if seen.truncated_at > place.meta.truncated_at:
            place = self._emptied(table, place, batch.schema, seen.truncated_at)
        groups = [batch.lanes] if seen.is_partial else [(lane,) for lane in batch.lanes]
        works = [
            replace(self._work(table, batch, group, place), is_partial=seen.is_partial)
            for group in groups
        ]
        return self._report(table, self._written(works, size))

    def resolved(self, table: TargetTable, mark: Resolved) -> None:
        """Let people find the copy, if it has just become whole."""
        known = self._places.get((table.source, table.generation))
        if known is None or not known.is_live:
            self._live(table)

    def refused(self, table: TargetTable, limit: int) -> list[RefusedRow] | None:
        """The documents in the index of refused ones, where it may have changed."""
        key = (table.source, table.generation)
        if key in self._told:
            return None
        found = listed(self._search, self._indexes(table).refused, table.source, limit)
        self._told.add(key)
        return found

    def replay(self, table: TargetTable) -> None:
        """Send the refused documents again."""
        self._live(table)
        self._try_again(table)

    def drop(self, table: TargetTable) -> None:
        """Remove the table's indexes that belong to this replicator."""
        self._forget(table.source)
        self._indexes(table).remove()

    @property
    def _search(self) -> Search:
        if self._opened is None:
            self._opened = Search(self._params)
        return self._opened

    def _alias(self, table: TargetTable) -> str:
        return alias_of(self._params.index, table.source)

    def _indexes(self, table: TargetTable) -> Indexes:
        return Indexes(self._search, self._params, self._alias(table), table)

    def _forget(self, table: TableId) -> None:
        """Look the table up again next time."""
        for key in [k for k in self._places if k[0] == table]:
            self._places.pop(key)

    def _place(self, table: TargetTable) -> Place:
        key = (table.source, table.generation)
        if key not in self._places:
            self._places[key] = Place(self._indexes(table).current(), is_live=False)
        return self._places[key]

    def _live(self, table: TargetTable) -> Place:
        """The place, found by its alias. What was refused in an earlier run is tried again."""
        place = self._place(table)
        if place.is_live:
            return place
        self._indexes(table).publish(place.meta)
        self._try_again(table)
        return self._keep(table, replace(place, is_live=True))

    def _try_again(self, table: TargetTable) -> None:
        indexes = self._indexes(table)
        self._told.discard((table.source, table.generation))
        bulk = Bulk(self._search, table.source, indexes.writing, self._params.bulk_megabytes << 20)
        done, left = try_again(bulk, indexes.refused)
        if done or left:
            logger.info(
                "Refused documents tried again: %d are settled, %d are left",
                done,
                left,
                extra={"table": str(table.source)},
            )

    def _keep(self, table: TargetTable, place: Place) -> Place:
        self._places[table.source, table.generation] = place
        return place

    def _mapped(self, table: TargetTable, place: Place, schema: TableSchema) -> Place:
        """The place, once its index knows the columns of the schema."""
        if place.meta.knows(schema):
            return place
        meta = self._indexes(table).extend(place.meta, schema)
        return self._keep(table, replace(place, meta=meta))

    def _emptied(
        self, table: TargetTable, place: Place, schema: TableSchema, truncated_at: int
    ) -> Place:
        """The place after a TRUNCATE."""
        meta = self._indexes(table).emptied(place.meta, schema, truncated_at)
        return self._keep(table, replace(place, meta=meta))

    def _size(self, lanes: Sequence[Lane]) -> int:
        return sum(lane.rows for lane in lanes)

    def _look(self, batch: ChangeBatch, rows: int) -> Look:
        looking = Looking(batch.schema)
        if rows <= ROWS_HERE:
            found = [look(lane, batch.schema) for lane in batch.lanes]
        else:
            found = self._tasks.map(looking, batch.lanes)
        return sum(found, start=Look())

    def _work(
        self, table: TargetTable, batch: ChangeBatch, lanes: tuple[Lane, ...], place: Place
    ) -> LaneWork:
        indexes = self._indexes(table)
        is_snapshot = batch.kind is BatchKind.SNAPSHOT
        return LaneWork(
            lanes=lanes,
            schema=batch.schema,
            params=self._params,
            alias=indexes.writing,
            version_type=EXTERNAL_GTE if is_snapshot else EXTERNAL,
            refused=indexes.refused,
            meta=indexes.owner(),
            floor=place.meta.truncated_at or -1,
        )

    def _written(self, works: Sequence[LaneWork], rows: int) -> list[Done]:
        if rows <= ROWS_HERE:
            return [write(work) for work in works]
        return self._tasks.map(write, works)

    def _report(self, table: TargetTable, done: Sequence[Done]) -> int:
        refused: dict[str, int] = {}
        for one in done:
            for kind, number in one.refused.items():
                refused[kind] = refused.get(kind, 0) + number
        if refused:
            self._told.discard((table.source, table.generation))
            logger.warning(
                "The cluster refused documents; they are kept in %s: %s",
                self._indexes(table).refused,
                ", ".join(f"{n} {kind}" for kind, n in refused.items()),
                extra={"table": str(table.source)},
            )
        rows, old = sum(d.rows for d in done), sum(d.old for d in done)
        if old:
            logger.info(
                "The cluster already had %d of %d changes, or newer ones",
                old,
                rows,
                extra={"table": str(table.source)},
            )
        return rows
