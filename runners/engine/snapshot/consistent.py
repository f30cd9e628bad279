"""A consistent snapshot as a table's copy needs it, and the protocol of its source."""

from __future__ import annotations

from typing import Protocol

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.target import TargetTable
from runners.engine.store.copies import CopyRow


class TableCopier(Protocol):
    """Copies tables inside one consistent snapshot: `chunks.Snapshotter` or
    `deliver.SinkSnapshotter`."""

    def find(self, table: TargetTable, schema: TableSchema) -> CopyRow | None:
        """The table's snapshot in progress that can be resumed in this consistent snapshot. One
        that can't is forgotten."""
        ...

    def copy(
        self,
        table: TargetTable,
        schema: TableSchema,
        sequence: int,
        known: CopyRow | None = None,
        *,
        quarantines: bool = False,
        resumes: bool = True,
        place: str | None = None,
    ) -> tuple[str, int] | None:
        """Copy the table, whose changes begin after `sequence`. Returns the UUID of the target's
        table and the number of rows; None where a stop was asked."""
        ...


class ConsistentSnapshot:
    """A consistent snapshot, as one table's copy needs it. `place`: where the table's rows lay when
    it was opened; None: not known."""

    def __init__(
        self,
        snapshotter: TableCopier,
        schema: TableSchema,
        position: int,
        sequence: int,
        place: str | None = None,
    ) -> None:
        self.snapshotter = snapshotter
        self.schema = schema
        self.position = position
        self.sequence = sequence
        self.place = place


class SnapshotSource:
    """Gives the consistent snapshot for a table. Implemented by `waiting.ConsistentSnapshots`."""

    def snapshot(self, table: TableId, *, is_exact: bool = False) -> ConsistentSnapshot | None:
        """The consistent snapshot to copy the table in; None where a stop is near. Raises
        `source:table-missing` and other errors of the source."""
        raise NotImplementedError

    def forget(self, table: TableId) -> None:
        """The table left the stream."""
        raise NotImplementedError
