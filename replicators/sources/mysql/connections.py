"""Connects to MySQL and MariaDB with fixed session settings, so that log and snapshot write values
alike."""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass
from functools import cache
from typing import Any

import pymysql
from pymysql.connections import Connection

from replicators.connectors import limits
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.errors import CONNECT_SECONDS, translate
from replicators.sources.mysql.offsets import MARIADB, MYSQL, Coordinates
from replicators.sources.mysql.params import MysqlParams

__all__ = ["Connection", "Server", "connect", "log_end", "query", "records", "server_of"]

READ_SECONDS = 60
CERTIFICATE_BYTES = 4 << 20

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


@cache
def _encrypting() -> ssl.SSLContext:
    """TLS that verifies no certificate. Made once: a copy opens a connection for each chunk."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Preferring(Connection):
    """Uses TLS if the server offers it."""

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return sslp if isinstance(sslp, ssl.SSLContext) else _encrypting()

    def _get_server_information(self) -> None:
        """Read the server's greeting, which comes first, under our time limits."""
        limits.watch(self._sock.fileno())
        super()._get_server_information()


def _certificates(path: str) -> str:
    """The text of a file of certificates. The file is opened non-blocking: a pipe would make us
    wait forever."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            text = _regular_text(fd, path)
        finally:
            os.close(fd)
    except OSError as err:
        reason = "is not there" if isinstance(err, FileNotFoundError) else "can't be read"
        raise _no_certificates(path, reason) from err
    if not text.strip():  # with an empty text this machine's own certificates would be used
        raise _no_certificates(path, "is empty")
    return text


def _regular_text(fd: int, path: str) -> str:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise _no_certificates(path, "is not a regular file")
    if found.st_size > CERTIFICATE_BYTES:
        raise _no_certificates(path, "is too large for a file of certificates")
    with open(fd, "rb", closefd=False) as file:
        return file.read(CERTIFICATE_BYTES).decode("ascii", "ignore")


def _no_certificates(path: str, reason: str) -> ReplicationError:
    return ReplicationError("source:tls-file", path=path, reason=reason)


def tls_context(params: MysqlParams) -> ssl.SSLContext | None:
    """The TLS rules. None means: use TLS if the server offers it."""
    if params.tls == "require":
        return _encrypting()
    if params.tls == "verify-full":
        trusted = _certificates(params.tls_ca) if params.tls_ca else None
        try:
            return ssl.create_default_context(cadata=trusted)
        except (OSError, ValueError) as err:
            if trusted is None:
                raise ReplicationError("source:tls", sslmode=params.tls) from err
            raise _no_certificates(params.tls_ca, "holds no certificates in PEM form") from err
    return None


def _settings() -> str:
    """The session's settings. With them the server itself ends a slow catalog query."""
    seconds = limits.statement_seconds()
    if seconds is None:
        return SETTINGS
    pinned = SETTINGS.replace(
        "max_execution_time = 0", f"max_execution_time = {seconds * 1000:.0f}"
    )
    return pinned.replace("max_statement_time = 0", f"max_statement_time = {seconds:.0f}")


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
        context = tls_context(params)
        if context is not None:
            options["ssl"] = context
        return _Preferring(**options)
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
