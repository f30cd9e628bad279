"""Staging tables at the server: made, emptied and dropped inside the caller's transaction.

Making a table for each merge would fill the server's catalogs with dead rows, so a small one is
kept for the next batch.
"""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from replicators.connectors.postgres import sql
from replicators.connectors.sql.client import Names
from replicators.targets.postgresql.connections import Connection
from replicators.targets.postgresql.encoding import Field
from replicators.targets.postgresql.publishing import quoted

MOST_KEPT = 10_000
"""Rows of a staging table that is kept for the next batch. A larger one is dropped."""
MOST_STORED = 50_000
"""Rows that a kept table may store, deleted ones with them. Then it is truncated."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A staging table of ours: its columns, its rows, and the rows that it stores with those that
    were deleted."""

    fields: tuple[Field, ...]
    rows: int
    stored: int


def emptied(
    connection: Connection, names: Names, fields: tuple[Field, ...], kept: Staged | None
) -> int:
    """Let there be an empty staging table: the kept one, if it has these columns and nobody dropped
    it. Returns the deleted rows that it still stores."""
    if kept is not None and kept.fields == fields:
        is_full = kept.stored > MOST_STORED
        text = "TRUNCATE" if is_full else "DELETE FROM"
        with suppress(psycopg.errors.UndefinedTable), connection.transaction():
            connection.execute(f"{text} {quoted(names)}".encode())
            return 0 if is_full else kept.stored
    create(connection, names, fields, is_logged=False)
    return 0


def drop(connection: Connection, names: Names) -> None:
    """Remove a table, where there is one."""
    connection.execute(f"DROP TABLE IF EXISTS {quoted(names)}".encode())


def create(
    connection: Connection, names: Names, fields: Iterable[Field], *, is_logged: bool = True
) -> None:
    """An empty table in place of one that an earlier try left."""
    kind = "TABLE" if is_logged else "UNLOGGED TABLE"
    # A staging table without statistics is planned for by its size on disk.
    more = "" if is_logged else " WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)"
    defined = ", ".join(f"{sql.name(c.name)} {c.native}" for c in fields)
    drop(connection, names)
    connection.execute(f"CREATE {kind} {quoted(names)} ({defined}){more}".encode())
