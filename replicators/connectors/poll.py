"""A source that is asked for its changes and answers with Arrow: its reader, and the part of the
plugin that names the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import FAULT_FIELDS, change_schema
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import P
from replicators.connectors.snapshot import FirstSnapshotOpener, SnapshotWait


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
class Polled:
    """What one poll found: the changes of whole transactions, and the position after the last one.

    A table has an entry for each version of its schema, in order. The position also moves where
    nothing changed in the chosen tables. `has_more`: the source has more changes now, so the next
    poll need not wait. `schema_version` is a new number whenever a chosen table's schema changed
    within or before this poll. The engine then describes the tables anew and polls again from the
    same position, so that it learns which of the new columns are followed.
    """

    position: Position
    changes: tuple[TableChanges, ...] = ()
    has_more: bool = False
    schema_version: int = 0


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
