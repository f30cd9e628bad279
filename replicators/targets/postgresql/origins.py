"""Marks transactions with a replication origin, so that whoever follows this database can leave
them out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from replicators.targets.postgresql.connections import Connection, Connections
from replicators.targets.postgresql.errors import translate

MERGING = "replicator.merging"
"""A session's setting while its changes are a replicator's: triggers that note what people delete
leave these out."""
FUNCTIONS = (
    "pg_replication_origin_create",
    "pg_replication_origin_session_setup",
    "pg_replication_origin_session_reset",
)
"""What the role must be allowed to call."""
_MAKE = """
SELECT pg_catalog.pg_replication_origin_create(%(name)s)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_origin WHERE roname = %(name)s)
"""
# A transaction sees the database as it was at its beginning: what it decides by is what it changes.
_BEGIN = f"""
SELECT pg_catalog.pg_replication_origin_session_setup(%s),
       set_config('default_transaction_isolation', 'repeatable read', false),
       set_config('{MERGING}', 'on', false)
"""  # noqa: S608 - our own names
_END = f"""
SELECT pg_catalog.pg_replication_origin_session_reset(),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('{MERGING}', 'off', false)
"""  # noqa: S608 - our own names


class Origin:
    """The origin with this name; an empty name marks nothing. One session at a time may use an
    origin, so the transactions of a process take turns."""

    def __init__(self, name: str, connections: Connections) -> None:
        self._name = name
        self._connections = connections
        self._turn = threading.Lock()
        self._is_made = False

    @contextmanager
    def marking(self) -> Iterator[None]:
        """The thread's transactions in this block are marked."""
        if not self._name:
            yield
            return
        with self._turn:
            connection = self._connections.get()
            self._begin(connection)
            try:
                yield
            finally:
                with suppress(psycopg.OperationalError):
                    connection.execute(_END.encode())

    def _begin(self, connection: Connection) -> None:
        try:
            if not self._is_made:
                with suppress(psycopg.errors.UniqueViolation):
                    connection.execute(_MAKE, {"name": self._name})
                self._is_made = True
            connection.execute(_BEGIN.encode(), [self._name])
        except psycopg.Error as err:
            self._is_made = False
            raise translate(err, self._connections.params) from err
