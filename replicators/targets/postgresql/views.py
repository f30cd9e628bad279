"""Removes and makes a view in the caller's transaction. Rights on it and its comments are kept."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from replicators.targets.postgresql import dependents
from replicators.targets.postgresql.connections import Connection
from replicators.targets.postgresql.publishing import quoted

Names = tuple[str, ...]
OID = """
SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind = 'v'
"""
DEPENDENT = "2BP01"
_ON_TABLE, _ON_VIEW = "COMMENT ON TABLE ", "COMMENT ON VIEW "


@dataclass(frozen=True, slots=True)
class Gone:
    """A view that was removed. `stays`: something of other people depends on it, so that it is
    still there. `names`: its place. `comments`, `rights`: statements that give them to the next
    view; None where there was no view."""

    stays: bool = False
    names: Names | None = None
    comments: tuple[str, ...] = ()
    rights: tuple[str, ...] | None = None


def remove(connection: Connection, names: Names | None, *, may_stay: bool) -> Gone:
    """Remove a view. It may stay where something depends on it."""
    oid = _oid(connection, names) if names is not None else None
    if names is None or oid is None:
        return Gone()
    columns = [n for (n,) in connection.execute(dependents.COLUMNS, {"oid": oid}).fetchall()]
    values = {"oid": oid, "table": quoted(names), "names": columns}

    def texts(query: str) -> tuple[str, ...]:
        used = {key: value for key, value in values.items() if f"%({key})s" in query}
        return tuple(str(t) for (t,) in connection.execute(query.encode(), used).fetchall())

    comments, rights = texts(dependents.COMMENTS), texts(dependents.RIGHTS)
    try:
        with connection.transaction():
            connection.execute(f"DROP VIEW {quoted(names)}".encode())
    except psycopg.Error as err:
        if err.sqlstate != DEPENDENT or not may_stay:
            raise
        return Gone(stays=True, names=names)
    return Gone(names=names, comments=comments, rights=rights)


def make(connection: Connection, names: Names, text: str, gone: Gone) -> None:
    """Make a view by a statement. The server refuses that where it stayed and would show other
    columns."""
    connection.execute(text.encode())
    oid = _oid(connection, names)
    if gone.names != names or gone.rights is None or oid is None:
        return
    for statement in dependents.default_rights(connection, oid, quoted(names)):
        connection.execute(statement.encode())
    for statement in gone.rights:
        connection.execute(statement.encode())
    for comment in gone.comments:
        shown = (
            comment.replace(_ON_TABLE, _ON_VIEW, 1) if comment.startswith(_ON_TABLE) else comment
        )
        _run_free(connection, shown)


def _run_free(connection: Connection, statement: str) -> None:
    """Run a statement that fails where its column is gone."""
    try:
        with connection.transaction():
            connection.execute(statement.encode())
    except psycopg.Error as err:
        if err.sqlstate != "42703":
            raise


def _oid(connection: Connection, names: Names) -> int | None:
    row = connection.execute(OID, list(names)).fetchone()
    return int(row[0]) if row else None
