"""Connects to MySQL and MariaDB with fixed session settings, so that log and snapshot write values
alike."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.connections import Connection

from replicators.connectors import limits
from replicators.connectors.mysql import tls
from replicators.sources.mysql.errors import CONNECT_SECONDS, translate
from replicators.sources.mysql.offsets import MARIADB, MYSQL, Coordinates
from replicators.sources.mysql.params import MysqlParams

__all__ = ["Connection", "Server", "connect", "log_end", "query", "records", "server_of"]

READ_SECONDS = 60

# Overrides of the server's global settings: a copy leaves out no row, reads no uncommitted row, and
# has no time limit. MariaDB ignores the first comment, MySQL the second.
SETTINGS = (
    "SET SESSION sql_mode = '', time_zone = '+00:00', net_write_timeout = 600, net_read_timeout "
    "= 600,"
    " wait_timeout = 28800, sql_select_limit = 18446744073709551615, sql_big_selects = ON"
    " /*!80000 , information_schema_stats_expiry = 0, max_execution_time = 0,"
    " transaction_isolation = 'REPEATABLE-READ' */"
    " /*M! , max_statement_time = 0, idle_transaction_timeout = 0, "
    "idle_readonly_transaction_timeout = 0,"
    " tx_isolation = 'REPEATABLE-READ' */"
)


def _settings() -> str:
    """The session's settings. With them the server itself ends a slow catalog query."""
    seconds = limits.statement_seconds()
    if seconds is None:
        return SETTINGS
    pinned = SETTINGS.replace(
        "max_execution_time = 0", f"max_execution_time = {seconds * 1000:.0f}"
    )
    return pinned.replace("max_statement_time = 0", f"max_statement_time = {seconds:.0f}")


def tls_context(params: MysqlParams) -> ssl.SSLContext | None:
    """The TLS rules. None means: use TLS if the server offers it."""
    return tls.context(params.tls, params.tls_ca, failed="source:tls", file="source:tls-file")


def connect(params: MysqlParams, **more: Any) -> Connection:
    """Open a connection in autocommit. ReplicationError where that fails."""
    options: dict[str, Any] = {
        "host": params.host,
        "port": params.port,
        "user": params.user,
        "password": params.password,
        "database": params.database or None,
        "charset": "utf8mb4",
        "connect_timeout": limits.left(CONNECT_SECONDS),
        "read_timeout": limits.left(READ_SECONDS),
        "write_timeout": limits.left(READ_SECONDS),
        "autocommit": True,
        "program_name": "replicator",
        "ssl_disabled": params.tls == "disable",
        "init_command": _settings(),
        **more,
    }
    try:
        return tls.connect(options, tls_context(params))
    except (pymysql.Error, OSError) as err:
        raise translate(err, params) from err


def query(connection: Connection, text: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement. PyMySQL's errors pass through unchanged."""
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)
        return list(cursor.fetchall())


def records(connection: Connection, text: str) -> list[dict[str, Any]]:
    """The rows of a SHOW statement by lower-case column name, because the columns differ by
    version."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        names = [d[0].lower() for d in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Server:
    """A server: its flavour, version, and an identity that survives restarts."""

    flavour: str
    version: tuple[int, int, int]
    version_text: str
    identity: str

    @property
    def is_mariadb(self) -> bool:
        return self.flavour == MARIADB


def server_of(connection: Connection) -> Server:
    """Ask a server what it is."""
    text = str(query(connection, "SELECT version()")[0][0])
    flavour = MARIADB if "mariadb" in text.lower() else MYSQL
    numbers = text.removeprefix("5.5.5-").split("-")[0].split(".")[:3]
    major, minor, patch = (
        int("".join(c for c in n if c.isdigit()) or 0) for n in (*numbers, "0", "0")[:3]
    )
    if flavour == MYSQL:
        identity = str(query(connection, "SELECT @@server_uuid")[0][0])
    else:
        identity = str(query(connection, "SELECT @@server_id")[0][0])
    return Server(flavour, (major, minor, patch), text, identity)


def log_end(connection: Connection, server: Server) -> Coordinates | None:
    """The current end of the server's binlog; None if it writes none."""
    is_new = not server.is_mariadb and server.version >= (8, 2, 0)
    found = records(connection, "SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS")
    if not found:
        return None
    row = found[0]
    file, offset = str(row["file"]), int(row["position"])
    if server.is_mariadb:
        gtids = query(connection, "SELECT BINLOG_GTID_POS(%s, %s)", file, offset)[0][0]
    else:
        gtids = row.get("executed_gtid_set", "")
    text = str(gtids or "").replace("\n", "")
    return Coordinates(server.flavour, server.identity, file, offset, text)
