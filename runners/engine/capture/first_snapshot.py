"""The consistent snapshot that a first start opens together with the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import ResumableSession, SnapshotSession

FirstSnapshot = tuple[SnapshotSession, Sequence[TableSchema], Mapping[TableId, str]]
"""A session, the schemas of the tables in it, and where their rows lie."""


def places(session: SnapshotSession, schemas: Sequence[TableSchema]) -> dict[TableId, str]:
    """Where the rows of each table lie, as this session sees it. Ask this before you ask for the
    schemas again: then one of the two shows a rewrite that happens in between."""
    found: dict[TableId, str] = {}
    if isinstance(session, ResumableSession):
        for schema in schemas:
            with suppress(ReplicationError):  # gone: its copy reports that
                found[schema.id] = session.layout(schema)
    return found
