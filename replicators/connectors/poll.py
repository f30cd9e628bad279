"""A source that is asked for its changes and answers with Arrow: its reader, and the part of the
plugin that names the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, runtime_checkable

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import FAULT_FIELDS, change_schema
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import P
from replicators.connectors.snapshot import FirstSnapshotOpener, SnapshotWait
from replicators.connectors.tasks import Tasks


def polled_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of `TableChanges.rows`: that of a change file without `_sequence`, which the
    engine adds."""
    return change_schema(schema).remove(0)


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table, of one version of its schema, in the order in which they were
    committed.

    `rows` has the columns of `polled_schema`; where some values can't be carried, `FAULT_FIELDS`
    stand behind them. A row's `_position` is at or after the ordinal of every position before its
    transaction, and lower than that of every position after it.
    """

    schema: TableSchema
    rows: pa.Table

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema that `rows` must have."""
        has_faults = FAULT_FIELDS[0].name in self.rows.column_names
        return pa.schema([*polled_schema(self.schema), *(FAULT_FIELDS if has_faults else ())])


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """A data set that arrived whole, as pages show it (`SourceCapabilities.has_deliveries`).

    `name` is the source's name of it, and `mark` changes with its content: the same name may come
    again with other rows. `at`: when it arrived, in seconds since the epoch. `rows` is what it has;
    `missing` counts the rows that a delta set does not have (X). `code` and `facts` say why it was
    refused; then nothing of it was applied.
    """

    table: TableId
    name: str
    mark: str
    at: float
    rows: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    missing: int = 0
    unchanged: int = 0
    quarantined: int = 0
    code: str = ""
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll found: the changes of whole transactions, and the position after the last one.

    A table has an entry for each version of its schema, in order. The position also moves where
    nothing changed in the chosen tables. `has_more`: the source has more changes now, so the next
    poll need not wait. `schema_version` is a new number whenever a chosen table's schema changed
    within or before this poll. The engine then describes the tables anew and polls again from the
    same position, so that it learns which of the new columns are followed. `deliveries` may repeat
    what an earlier poll reported. `next_at`: when the source will have its next data, where a
    schedule says so (seconds since the epoch).
    """

    position: Position
    changes: tuple[TableChanges, ...] = ()
    has_more: bool = False
    schema_version: int = 0
    deliveries: tuple[DeliveryReport, ...] = ()
    next_at: float | None = None


class PollReader(Closing, Protocol):
    """Asks the source for its changes. Used by one thread."""

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        """Where `position` is None, make what is needed at the source and is missing. Otherwise
        verify that the source still has every change after `position`: `source:position-lost`,
        `source:slot-missing`. Idempotent."""
        ...

    def poll(self, after: Position, tables: Sequence[TableSchema], *, max_bytes: int) -> Polled:
        """The changes of these tables after `after`, up to now, with the columns that `tables` have
        and those of older schemas. It returns at most about `max_bytes` of changes. Until they are
        acknowledged, the same question gives the same changes first; more may follow them."""
        ...

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to `position` is durable here. Cheap; safe to
        repeat."""
        ...


@runtime_checkable
class NeedsTasks(Protocol):
    """A reader that spreads its work over the run's workers. The engine calls `use_tasks` before
    anything else."""

    def use_tasks(self, tasks: Tasks, progress: Callable[[int], None]) -> None:
        """`progress` is to be called before each long step, with the number of rows in it: the
        poll's deadline then starts again."""
        ...


@dataclass(frozen=True, slots=True)
class ChangePoll(Generic[P]):
    """The part of a plugin whose source is asked for changes. The engine records the result of a
    poll as decoded at once.

    `reader` gets the params and the name of what the replicator makes at the source. `seconds`
    gives, from the params, how long to wait before the next poll when the last one brought
    everything.
    """

    reader: Callable[[P, str], PollReader]
    snapshot_first: FirstSnapshotOpener[PollReader, P]
    seconds: Callable[[P], float] = lambda _: 1.0
