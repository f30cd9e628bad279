"""A consistent view as a table's copy needs it, and who gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import ResumableSession, SnapshotSession
from replicators.connectors.target import TargetTable
from runners.engine.snapshot.progress import CopyRow

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


class TableCopier(Protocol):
    """Copies tables inside one consistent view: `chunks.Snapshotter` or `deliver.SinkSnapshotter`."""

    def find(self, table: TargetTable, schema: TableSchema) -> CopyRow | None:
        """The table's snapshot that this view can go on with; one that can't is forgotten."""
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
        """Copy the table, whose changes begin after `sequence`: the target's UUID of it and its rows; None where a stop was
        asked."""
        ...


class ConsistentSnapshot:
    """A consistent view, as one table's snapshot needs it. `place`: where the table's rows lay when it was opened; None: not told."""

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
    """Gives the view for a table. Implemented by `waiting.ConsistentSnapshots`."""

    def snapshot(self, table: TableId, *, is_exact: bool = False) -> ConsistentSnapshot | None:
        """The view to copy the table in; None where a stop is near. `source:table-missing` and others of the source."""
        raise NotImplementedError

    def forget(self, table: TableId) -> None:
        """The table left the stream."""
        raise NotImplementedError
