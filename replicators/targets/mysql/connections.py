"""Connections to the target, and the settings of their sessions."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import time, timedelta
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, FIELD_TYPE
from pymysql.converters import conversions, convert_timedelta
from pymysql.protocol import OKPacketWrapper

from replicators.connectors import limits
from replicators.connectors.mysql import tls
from replicators.targets.mysql.errors import CONNECT_SECONDS, LOCK_SECONDS, translate
from replicators.targets.mysql.params import MysqlTargetParams

__all__ = ["FAULTS", "Connection", "connect", "query", "send"]

FAULTS = (pymysql.Error, OSError, RuntimeError)
"""What PyMySQL raises. A RuntimeError: the server asks for a file that no `send` offers."""
LOOK_SECONDS = 60
PACKET_BYTES = 1 << 18
SETTINGS = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
    " sql_safe_updates = OFF, sql_select_limit = 18446744073709551615, sql_big_selects = ON,"
    " net_write_timeout = 600, net_read_timeout = 600, wait_timeout = 28800,"
    f" lock_wait_timeout = {LOCK_SECONDS}, innodb_lock_wait_timeout = {LOCK_SECONDS}"
    " /*!80000 , information_schema_stats_expiry = 0, max_execution_time = 0 */"
    " /*M! , max_statement_time = 0, idle_transaction_timeout = 0 */"
)
# A transaction that waited for the lock of a progress row sees what the other one committed.
ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
_SILENT = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
"""A connection whose path is gone ends after about a minute. A statement may take longer."""


def _time(text: str) -> time | str:
    """A time of day. The driver would make a duration of it."""
    found = convert_timedelta(text)
    if not isinstance(found, timedelta):
        return text
    seconds, micros = found.seconds, found.microseconds
    return time(seconds // 3600, seconds % 3600 // 60, seconds % 60, micros)


VALUES = {**conversions, FIELD_TYPE.TIME: _time}
TEXTS = {kind: how for kind, how in conversions.items() if not isinstance(kind, int)}
"""Leaves every value as the server's text, or as bytes."""


def connect(params: MysqlTargetParams, **more: Any) -> Connection:
    """Open a connection in autocommit. ReplicationError where that fails."""
    options: dict[str, Any] = {
        "host": params.host,
        "port": params.port,
        "user": params.user,
        "password": params.password,
        "charset": "utf8mb4",
        "connect_timeout": limits.left(CONNECT_SECONDS),
        "read_timeout": _look_seconds(),
        "write_timeout": _look_seconds(),
        "autocommit": True,
        "program_name": "replicator-target",
        "client_flag": CLIENT.LOCAL_FILES,  # for `send`: the driver itself opens no file
        "ssl_disabled": params.tls == "disable",
        "init_command": SETTINGS,
        "conv": VALUES,
        **more,
    }
    try:
        rules = tls.context(
            params.tls, params.tls_ca, failed="target:mysql-tls", file="target:mysql-tls-file"
        )
        made = tls.connect(options, rules)
        for name, value in _SILENT:
            made._sock.setsockopt(socket.IPPROTO_TCP, name, value)
        query(made, ISOLATION)
    except FAULTS as err:
        raise translate(err, params) from err
    return made


def _look_seconds() -> float | None:
    """A look has an end. A merge takes as long as it takes."""
    return None if limits.statement_seconds() is None else limits.left(LOOK_SECONDS)


def query(connection: Connection, text: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement. PyMySQL's errors pass through unchanged."""
    with connection.cursor() as cursor:
        cursor.execute(text, values or None)
        return list(cursor.fetchall())


def send(connection: Connection, text: str, parts: Iterable[memoryview]) -> tuple[int, int]:
    """Run a LOAD DATA LOCAL with these bytes as its file; its counts of rows and of warnings. No
    file is opened, whatever the server asks for."""
    connection._execute_command(COMMAND.COM_QUERY, text)
    if not connection._read_packet().is_load_local_packet():
        raise pymysql.InternalError(0, "The server did not ask for the rows.")
    try:
        for part in parts:
            for at in range(0, len(part), PACKET_BYTES):
                connection.write_packet(part[at : at + PACKET_BYTES])
    finally:
        if connection.open:
            connection.write_packet(b"")
            answer = connection._read_packet()
    told = OKPacketWrapper(answer)
    return told.affected_rows, told.warning_count
