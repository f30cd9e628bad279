"""Puts a staged table in the place of the live one, inside the caller's transaction."""

from __future__ import annotations

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.postgres import sql
from replicators.targets.postgresql.connections import Connection

Names = tuple[str, ...]
VERSIONS = frozenset({"_valid_from", "_row_hash"})
"""A copy with such a column has several rows of a key."""
CHANGES = frozenset({"_operation", "_sequence", "_unsent"})
"""A copy with these columns only gets more rows: nothing is looked up by its key."""


def quoted(names: Names) -> str:
    """A table's qualified name."""
    return ".".join(sql.name(part) for part in names)


def publish(connection: Connection, staged: Names, live: Names, schema: TableSchema) -> None:
    """The staged table becomes the live one, with its key."""
    for statement in index(staged, schema):
        connection.execute(statement.encode())
    connection.execute(f"ANALYZE {quoted(staged)}".encode())
    connection.execute(f"DROP TABLE IF EXISTS {quoted(live)}".encode())
    connection.execute(f"ALTER TABLE {quoted(staged)} RENAME TO {sql.name(live[-1])}".encode())


def index(staged: Names, schema: TableSchema) -> tuple[str, ...]:
    """The statements that make the index by which merges find rows."""
    names = {c.name for c in schema.columns}
    if not schema.key or names >= CHANGES:
        return ()
    key = sql.names(schema.key)
    is_unique = not names & VERSIONS and not any(schema.column(k).nullable for k in schema.key)
    if is_unique:
        return (f"ALTER TABLE {quoted(staged)} ADD PRIMARY KEY ({key})",)
    return (f"CREATE INDEX ON {quoted(staged)} ({key})",)
