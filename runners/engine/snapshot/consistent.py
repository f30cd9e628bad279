"""A consistent view as a table's copy needs it, and who gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import ResumableSession, SnapshotSession
from runners.engine.snapshot.chunks import Snapshotter

FirstSnapshot = tuple[SnapshotSession, Sequence[TableSchema], Mapping[TableId, str]]
"""A session, the shapes of the tables in it, and where their rows lie."""


def places(session: SnapshotSession, shapes: Sequence[TableSchema]) -> dict[TableId, str]:
    """Where the rows of each table lie, as far as this session tells it; asked before the shapes are asked again, so that a rewrite
    in between is seen by one of the two."""
    found: dict[TableId, str] = {}
    if isinstance(session, ResumableSession):
        for shape in shapes:
            with suppress(ReplicationError):  # gone: its copy says so
                found[shape.id] = session.layout(shape)
    return found


class ConsistentSnapshot:
    """A consistent view, as one table's snapshot needs it. `place`: where the table's rows lay when it was opened; None: not told."""

    def __init__(
        self,
        snapshotter: Snapshotter,
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
    """Gives the view for a table. Implemented by `waiting.ConsistentSnapshots`."""

    def snapshot(self, table: TableId, *, is_exact: bool = False) -> ConsistentSnapshot | None:
        """The view to copy the table in; None where a stop is near. `source:table-missing` and others of the source."""
        raise NotImplementedError

    def forget(self, table: TableId) -> None:
        """The table left the stream."""
        raise NotImplementedError
