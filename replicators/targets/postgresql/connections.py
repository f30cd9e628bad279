"""Connections to the target: one for each thread, opened when it is needed, and opened again after
it was lost."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
from psycopg.types.string import TextLoader

from replicators.connectors.postgres import connections
from replicators.targets.postgresql.errors import LOCK_SECONDS, translate
from replicators.targets.postgresql.params import PostgresqlTargetParams

Connection = psycopg.Connection[tuple[Any, ...]]
APPLICATION = "replicator-target"
OPTIONS = {
    **connections.SETTINGS,
    "lock_timeout": str(LOCK_SECONDS * 1000),
    # A transaction that waited for the lock of a progress row sees what the other one committed.
    "default_transaction_isolation": "read committed",
    # Row security never hides rows from a merge: it fails instead.
    "row_security": "off",
    # The server ends our statement soon after this process is gone.
    "client_connection_check_interval": "10000",
}
_AS_TEXT = ("uuid", "json", "jsonb")


def connect(params: PostgresqlTargetParams) -> Connection:
    """Open a connection in autocommit. ReplicationError where that fails."""
    try:
        made = connections.open_connection(params, OPTIONS, name=APPLICATION)
        # A commit that was acknowledged is never lost: our own store goes on from it. Another value
        # than `off` stays, since it may be stricter.
        made.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
    except psycopg.Error as err:
        raise translate(err, params) from err
    for name in _AS_TEXT:
        made.adapters.register_loader(name, TextLoader)
    return made


class Connections:
    """Lends each thread its connection."""

    def __init__(self, params: PostgresqlTargetParams) -> None:
        self.params = params
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: dict[int, Connection] = {}

    def get(self) -> Connection:
        """This thread's connection. A lost one is opened again."""
        known: Connection | None = getattr(self._own, "connection", None)
        if known is not None and not known.closed:
            return known
        made = connect(self.params)
        self._own.connection = made
        with self._lock:
            self._all[threading.get_ident()] = made
        return made

    def give_up(self) -> None:
        """Close this thread's connection, for example after an error that left it in doubt."""
        known: Connection | None = getattr(self._own, "connection", None)
        if known is not None:
            known.close()
            self._own.connection = None

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            while self._all:
                self._all.popitem()[1].close()
