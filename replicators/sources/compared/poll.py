"""Gives the changes of one delivery after another. A delivery is compared when its turn comes; its
changes are then given in portions, from files that stay until they are acknowledged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from replicators.connectors import files
from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.poll import DeliveryReport, Polled, TableChanges, polled_schema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import SnapshotWait
from replicators.connectors.tasks import Tasks
from replicators.sources.compared.arrivals import Arrival
from replicators.sources.compared.choice import Choice
from replicators.sources.compared.columns import remember
from replicators.sources.compared.errors import reading
from replicators.sources.compared.journal import (
    Compared,
    Journal,
    number_of,
    ordinal,
    portion_of,
)
from replicators.sources.compared.messages import REFUSALS
from replicators.sources.compared.params import ComparedParams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("replicator.deliveries")


class ComparedPoll(Closing):
    """`PollReader` and `NeedsTasks`."""

    def __init__(self, params: ComparedParams, name: str) -> None:
        self._params = params
        self._journal = Journal(params.folder_of(name))
        self._choice = Choice(params, self._journal)
        self._lock = threading.RLock()
        self._asked: Sequence[TableSchema] = ()
        self._tasks: Tasks | None = None
        self._progress: Callable[[int], None] = lambda rows: None

    def use_tasks(self, tasks: Tasks, progress: Callable[[int], None]) -> None:
        """Spark compares."""
        self._tasks, self._progress = tasks, progress
        _READERS[self._journal.folder] = self

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        """Read the journal, and remove what a crash left."""
        self._asked = tables
        if position is None:
            self._journal.forget()
            return
        self._journal.read().require(position)
        self._journal.sweep()

    def poll(self, after: Position, tables: Sequence[TableSchema], *, max_bytes: int) -> Polled:
        """The next portions of the delivery at `after`, which is compared first where need be."""
        found = self._journal.delivery(number_of(after.ordinal))
        if found is None:
            with self._lock:
                found = self._compared(tables, after)
        reports = self._reports(tables)
        next_at = self._choice.next_at
        if found is None:
            return Polled(
                after,
                schema_version=self._journal.version,
                deliveries=reports,
                next_at=next_at,
            )
        is_chosen = any(t.id == found.table for t in tables)
        first = portion_of(after.ordinal)
        changes, behind = (
            _portions(found, first, max_bytes) if is_chosen else ((), len(found.changes))
        )
        is_done = behind >= len(found.changes)
        place = ordinal(found.number + 1) if is_done else ordinal(found.number, behind)
        has_more = not is_done or self._has_next(found.number + 1, tables)
        return Polled(
            self._journal.at(place),
            changes,
            has_more,
            found.schema_version,
            reports,
            next_at,
        )

    def _has_next(self, number: int, tables: Sequence[TableSchema]) -> bool:
        """Whether another delivery was compared, or waits for it."""
        if self._journal.delivery(number) is not None:
            return True
        with self._lock:
            return self._choice.next(tables) is not None

    def _reports(self, tables: Sequence[TableSchema]) -> tuple[DeliveryReport, ...]:
        chosen = {t.id for t in tables}
        done = [d.report for d in self._journal.deliveries if d.table in chosen]
        return (*done, *self._choice.reports(tables))

    def compare_first(self, tables: Sequence[TableSchema] | None = None) -> None:
        """Compare the first delivery of each table that has none, where it is there: a copy of the
        table will have its rows. `tables`: those of `prepare` where it is None."""
        with self._lock:
            for table in self._asked if tables is None else tables:
                if self._journal.last_of(table.id) is None:
                    self._compared([table], is_copied=True)

    def _compared(
        self,
        tables: Sequence[TableSchema],
        after: Position | None = None,
        *,
        is_copied: bool = False,
    ) -> Compared | None:
        """Compare deliveries until one is accepted; None where there is no other. The one that
        comes next `after` that position may have been compared meanwhile, for a copy."""
        if after is not None and (known := self._journal.delivery(number_of(after.ordinal))):
            return known
        while (arrival := self._choice.next(tables, is_now=is_copied)) is not None:
            schema = next(t for t in tables if t.id.name == arrival.table)
            try:
                found = self._compare(arrival, schema, is_copied=is_copied)
            except ReplicationError as err:
                if err.code not in REFUSALS:
                    raise
                self._refuse(arrival, schema, err)
                continue
            if found is None:
                return None
            remember(self._params, found.schema)
            self._journal.add(found)
            self._choice.accepted(schema.id)
            return found
        return None

    def _compare(
        self, arrival: Arrival, schema: TableSchema, *, is_copied: bool
    ) -> Compared | None:
        """Compare one; None where its files changed meanwhile."""
        from replicators.sources.compared.comparing import Work, compare

        if not schema.key:
            raise ReplicationError("source:no-key-named", table=schema.id)
        assert self._tasks is not None and self._tasks.spark is not None, "no Spark"
        spark = cast("SparkSession", self._tasks.spark)
        work = Work(spark, self._tasks, self._params, self._journal, self._progress)
        number = number_of(self._journal.end.ordinal)
        found = compare(work, number, arrival, schema, is_copied=is_copied)
        if self._choice.is_still(arrival):
            return found
        logger.info("The delivery %s changed while it was read.", arrival.delivery)
        files.remove_all(p.path for p in (*found.rows, *found.changes))
        return None

    def _refuse(self, arrival: Arrival, schema: TableSchema, err: ReplicationError) -> None:
        report = DeliveryReport(
            schema.id,
            arrival.delivery,
            arrival.mark,
            arrival.at,
            rows=int(err.facts.get("rows", 0)) if err.code.endswith("shrank") else 0,
            code=err.code,
            facts=tuple(err.facts.items()),
        )
        logger.warning("%s", err.message.text, extra={"table": str(schema.id)})
        self._choice.refuse(report)

    def acknowledge(self, position: Position) -> None:
        """Remove what is no longer needed."""
        self._journal.prune(position)

    def close(self) -> None:
        """Copies that begin later find no reader here."""
        if _READERS.get(self._journal.folder) is self:
            del _READERS[self._journal.folder]


_READERS: dict[str, ComparedPoll] = {}
"""The readers of this process, by their folders: a copy of a new table asks one of them."""


def reader_of(folder: str) -> ComparedPoll | None:
    """The reader that writes this journal, in this process."""
    return _READERS.get(folder)


def _portions(found: Compared, first: int, max_bytes: int) -> tuple[tuple[TableChanges, ...], int]:
    """The changes of the next portions, at least of one, and the number of the portion after
    them."""
    taken: list[TableChanges] = []
    size = 0
    for number in range(first, len(found.changes)):
        portion = found.changes[number]
        if taken and size + portion.size > max_bytes:
            return tuple(taken), number
        size += portion.size
        taken.append(_changes(found, number))
    return tuple(taken), max(first, len(found.changes))


def _changes(found: Compared, number: int) -> TableChanges:
    """A portion with the columns that a poll adds."""
    with reading("state"):
        rows = files.read_table(found.changes[number].path)
    declared = polled_schema(found.schema)
    at = pa.scalar(datetime.fromtimestamp(found.report.at, UTC), pa.timestamp("us", tz="UTC"))
    made = {
        "_committed_at": pa.repeat(at, rows.num_rows),
        "_transaction": pa.repeat(pa.scalar(found.number, pa.int64()), rows.num_rows),
        "_position": pa.repeat(pa.scalar(ordinal(found.number, number), pa.int64()), rows.num_rows),
        "_unchanged": pa.nulls(rows.num_rows, pa.binary()),
    }
    has_faults = rows.column(FAULT_FIELDS[0].name).null_count < rows.num_rows
    wanted = pa.schema([*declared, *(FAULT_FIELDS if has_faults else ())])
    columns = [made[f.name] if f.name in made else rows.column(f.name).cast(f.type) for f in wanted]
    return TableChanges(found.schema, pa.Table.from_arrays(columns, schema=wanted))
