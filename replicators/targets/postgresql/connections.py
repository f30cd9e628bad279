"""Connections to the target, and the settings of their sessions."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.types.string import TextLoader

from replicators.connectors.postgres import connections
from replicators.connectors.sql.per_thread import PerThread
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


class Connections(PerThread[Connection]):
    """Lends each thread its connection."""

    def __init__(self, params: PostgresqlTargetParams) -> None:
        super().__init__(lambda: connect(params), lambda made: not made.closed)
        self.params = params
