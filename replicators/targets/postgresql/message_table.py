"""The table with the messages of all source tables: `_replicator_messages` in the target's schema.

Each source table's messages lie in a table of their own, which is a partition of it. So a fresh
copy replaces the messages of one table in one transaction. All of this runs in the caller's
transaction.
"""

from __future__ import annotations

from psycopg.sql import Literal

from replicators.connectors.model.modes import MESSAGE_COLUMNS
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.postgres import sql
from replicators.targets.postgresql.connections import Connection
from replicators.targets.postgresql.naming import MESSAGES

Names = tuple[str, ...]
_CHECK = "_replicator_of_table"
_COLUMNS = (
    '"table" text NOT NULL, message_id bigint NOT NULL, key jsonb, value json, '
    'PRIMARY KEY ("table", message_id)'
)
_PARENT = """
SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
WHERE i.inhrelid = %s AND p.relname = %s
"""
_IS_OURS = """
SELECT c.relkind = 'p' FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""


def is_of(schema: TableSchema) -> bool:
    """Whether a copy with this schema holds messages."""
    return schema.columns == MESSAGE_COLUMNS


def is_part(connection: Connection, oid: int) -> bool:
    """Whether the table is a partition of the table of messages."""
    return connection.execute(_PARENT, [oid, MESSAGES]).fetchone() is not None


def prepare(connection: Connection, staged: Names, schema: TableSchema) -> None:
    """Let the server know that all rows of the staged table are of one source table, so that it
    does not read them again when they are attached. One such table is published at a time."""
    lock = "SELECT pg_catalog.pg_advisory_xact_lock(hashtextextended(%s, 0))"
    connection.execute(lock, [_path((*staged[:-1], MESSAGES))])
    _run(
        connection,
        f"ALTER TABLE {_path(staged)} ADD CONSTRAINT {_CHECK} "
        f'CHECK ("table" = {_literal(connection, schema)})',
    )


def detach(connection: Connection, live: Names) -> None:
    """Take a partition out. Readers wait from now on: they lock the parent before its parts, and so
    do we."""
    parent = _path((*live[:-1], MESSAGES))
    _run(connection, f"LOCK TABLE ONLY {parent} IN ACCESS EXCLUSIVE MODE")
    _run(connection, f"ALTER TABLE {parent} DETACH PARTITION {_path(live)}")


def attach(connection: Connection, live: Names, schema: TableSchema) -> None:
    """Make the live table a partition."""
    parent = (*live[:-1], MESSAGES)
    if connection.execute(_IS_OURS, list(parent)).fetchone() is None:
        _run(
            connection,
            f'CREATE TABLE IF NOT EXISTS {_path(parent)} ({_COLUMNS}) PARTITION BY LIST ("table")',
        )
    _run(
        connection,
        f"ALTER TABLE {_path(parent)} ATTACH PARTITION {_path(live)} "
        f"FOR VALUES IN ({_literal(connection, schema)})",
    )
    _run(connection, f"ALTER TABLE {_path(live)} DROP CONSTRAINT IF EXISTS {_CHECK}")


def _literal(connection: Connection, schema: TableSchema) -> str:
    return Literal(str(schema.id)).as_string(connection)


def _path(names: Names) -> str:
    return ".".join(sql.name(part) for part in names)


def _run(connection: Connection, text: str) -> None:
    connection.execute(text.encode())
