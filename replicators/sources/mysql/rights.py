"""Finds the rights that a user lacks by trying what needs them: grants alone do not show rights
through roles and wildcards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pymysql

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.mysql import sql
from replicators.connectors.problems.problem import Problem
from replicators.sources.mysql.connections import Connection, Server, log_end, query, records
from replicators.sources.mysql.params import MysqlParams

DENIED = frozenset({1044, 1045, 1142, 1143, 1227})
MISSING = frozenset({1049, 1146})
LOCKED = 1205


def missing_rights(
    connection: Connection, server: Server, params: MysqlParams
) -> Iterator[Problem]:
    """The missing ones of REPLICATION CLIENT (in MariaDB: BINLOG MONITOR) and REPLICATION SLAVE."""
    user = f"{sql.literal(params.user)}@'%'"
    try:
        log_end(connection, server)
    except pymysql.Error as err:
        if err.args[0] not in DENIED:
            raise
        yield _missing(user, "REPLICATION CLIENT")
    if not may_replicate(connection, server):
        yield _missing(user, "REPLICATION SLAVE")


def _missing(user: str, right: str) -> Problem:
    statement = f"GRANT {right} ON *.* TO {user};"
    return Problem.of("source:right-missing", user=user, right=right, statement=statement)


def may_replicate(connection: Connection, server: Server) -> bool:
    """Whether the user may read the log. It runs a statement that needs the same right but reads no
    events."""
    is_new = not server.is_mariadb and server.version >= (8, 0, 22)
    words = "SHOW REPLICAS" if is_new else "SHOW BINLOG EVENTS IN '' LIMIT 0"
    if server.is_mariadb:
        return _grants_replication(connection)
    try:
        records(connection, words)
    except pymysql.Error as err:
        if err.args[0] in DENIED:
            return False
        raise
    return True


def may_see_readers(connection: Connection) -> bool:
    """Whether the user may list the readers of a MariaDB's log. Only the choice of a server id
    needs this."""
    try:
        query(connection, "SHOW SLAVE HOSTS")
    except pymysql.Error as err:
        if err.args[0] not in DENIED:
            raise
        return False
    return True


def _grants_replication(connection: Connection) -> bool:
    """Look at the user's privileges, roles included. In MariaDB only the dump itself needs this
    right, so no other statement can test it."""
    found = query(
        connection,
        "SELECT count(*) FROM information_schema.user_privileges"
        " WHERE privilege_type IN ('REPLICATION SLAVE', 'REPLICATION_SLAVE')",
    )
    return bool(found[0][0])


def unreadable(connection: Connection, tables: Sequence[TableSelection]) -> set[TableId]:
    """The tables that the user may not read."""
    closed = set()
    for selection in tables:
        try:
            query(connection, f"SELECT 1 FROM {sql.table(selection.id)} LIMIT 0")  # noqa: S608 - quoted
        except pymysql.Error as err:
            if err.args[0] in DENIED:
                closed.add(selection.id)
            elif err.args[0] not in MISSING:
                raise
    return closed


def may_lock(connection: Connection, table: TableId) -> bool:
    """Whether the user may lock the table against writing. In MySQL the copy of a table without a
    key needs this. A granted lock is released at once; a lock held by others is waited for at most
    one second."""
    query(connection, "SET SESSION lock_wait_timeout = 1")
    try:
        query(connection, f"LOCK TABLES {sql.table(table)} READ")
    except pymysql.Error as err:
        if err.args[0] in DENIED:
            return False
        if err.args[0] != LOCKED:
            raise
    query(connection, "UNLOCK TABLES")
    return True
