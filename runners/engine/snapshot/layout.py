"""Where a table's rows lie at the source, and whether they still lie there."""

from __future__ import annotations

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import ResumableSession, SnapshotSession
from runners.engine.store.protocol import Store


def layout(session: SnapshotSession, schema: TableSchema) -> str:
    """Where the source says that rows lie. Empty where its chunks can't be used in another
    consistent snapshot."""
    return session.layout(schema) if isinstance(session, ResumableSession) else ""


def check_place(session: SnapshotSession, schema: TableSchema, place: str, store: Store) -> None:
    """Raise an error where the table was rewritten. Such a table may look empty in all snapshots
    from before (PostgreSQL's manual, caveats of MVCC), and its rows lie elsewhere: a new consistent
    snapshot is needed."""
    if place and layout(session, schema) != place:
        store.log("WARNING", "The table was rewritten since its view.", schema.id)
        raise ReplicationError("source:snapshot-lost")
