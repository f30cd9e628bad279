"""Connects to PostgreSQL with fixed session settings, so that log and snapshot write values
alike."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq

from replicators.connectors import limits
from replicators.connectors.postgres import connections
from replicators.connectors.postgres.connections import CONNECT_SECONDS, SETTINGS
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.offsets import Identity
from replicators.sources.postgresql.params import PostgresqlParams

WAIT_MILLISECONDS = 1000
# Our own commits (heartbeats) are flushed at once, wait for no standby, and never write to the
# user's data. Row security never hides rows: a query that a policy would change fails.
OPTIONS = {
    **SETTINGS,
    "synchronous_commit": "local",
    "default_transaction_read_only": "off",
    "row_security": "off",
}


def connection_string(params: PostgresqlParams, **more: Any) -> str:
    """A libpq connection string. It holds the password: never log it."""
    return connections.connection_string(params, OPTIONS, **more)


def connect(params: PostgresqlParams) -> psycopg.Connection[tuple[Any, ...]]:
    """Open an ordinary connection in autocommit. ReplicationError where that fails."""
    try:
        return connections.open_connection(params, OPTIONS)
    except psycopg.Error as err:
        raise translate(err, params) from err


class ReplicationConnection:
    """A walsender's connection, for replication commands; use from one thread."""

    def __init__(self, params: PostgresqlParams) -> None:
        self.params = params
        try:
            connection = psycopg.Connection.connect(
                connection_string(params, replication="database"), autocommit=True
            )
        except psycopg.Error as err:
            raise translate(err, params) from err
        limits.watch(connection.fileno())
        self._owner = connection
        self.pgconn: pq.abc.PGconn = connection.pgconn

    def command(
        self, text: str, *, on_wait: Callable[[float], None] | None = None, **facts: Any
    ) -> list[list[str | None]]:
        """Run a replication command; return its rows as text. While it runs, `on_wait` is called
        each second with the seconds waited. An exception from `on_wait` ends the command and the
        connection."""
        result = (
            self.pgconn.exec_(text.encode()) if on_wait is None else self._waited(text, on_wait)
        )
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            error = psycopg.errors.error_from_result(result)
            raise translate(error, self.params, **facts) from error
        return [
            [_text(result.get_value(row, column)) for column in range(result.nfields)]
            for row in range(result.ntuples)
        ]

    def _waited(self, text: str, on_wait: Callable[[float], None]) -> pq.abc.PGresult:
        began = time.monotonic()
        self.pgconn.send_query(text.encode())
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        try:
            while self.pgconn.is_busy():
                if poll.poll(WAIT_MILLISECONDS):
                    self.pgconn.consume_input()
                else:
                    on_wait(time.monotonic() - began)
        except BaseException:
            self._owner.cancel_safe(timeout=CONNECT_SECONDS)
            self.close()
            raise
        result = self.pgconn.get_result()
        while self.pgconn.get_result() is not None:
            pass
        assert result is not None, "the command was sent"
        return result

    def identity(self) -> Identity:
        """The server's system identifier and timeline."""
        row = self.command("IDENTIFY_SYSTEM")[0]
        return Identity(str(row[0]), int(row[1] or 0))

    def close(self) -> None:
        """End the connection; safe to repeat."""
        self._owner.close()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
