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
        """The view to copy the table in; None where a stop is near. `source:table-missing` and others of the source."""
        raise NotImplementedError

    def forget(self, table: TableId) -> None:
        """The table left the stream."""
        raise NotImplementedError
