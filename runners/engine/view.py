"""A consistent view as a table's copy needs it, and who gives it."""

from __future__ import annotations

from replicators.connectors.schema import TableId, TableSchema
from runners.engine.snapshot import Snapshotter


class View:
    """A consistent view, as one table's snapshot needs it."""

    def __init__(
        self,
        snapshotter: Snapshotter,
        schema: TableSchema,
        position: int,
        sequence: int,
    ) -> None:
        self.snapshotter = snapshotter
        self.schema = schema
        self.position = position
        self.sequence = sequence


class SnapshotSource:
    """Gives the view for a table. Implemented by `views.Views`."""

    def view(self, table: TableId, *, is_exact: bool = False) -> View | None:
        """The view to copy the table in, until `done`; None where a stop is near, or where a new one is needed while others copy in the
        present one. `source:table-missing` and others of the source."""
        raise NotImplementedError

    def done(self, table: TableId) -> None:
        """The table needs its view no longer, however its copy ended; idempotent."""
        raise NotImplementedError

    def forget(self, table: TableId) -> None:
        """The table left the stream."""
        raise NotImplementedError
