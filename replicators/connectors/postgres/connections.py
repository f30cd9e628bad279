"""Opens connections to PostgreSQL by psycopg: TLS, time limits, and settings of the session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo

from replicators.connectors import limits
from replicators.connectors.postgres.params import Server

CONNECT_SECONDS = 5
SILENT_SECONDS = 30
"""For so long what was sent may stay unconfirmed. Without a limit of its own a connection whose
path is gone hangs for a quarter of an hour: keepalives are not sent while anything waits, and the
log's reader tells its position every few seconds."""
SETTINGS = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "search_path": "pg_catalog",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""Values are written alike wherever they are read, and no limit of a role ends our sessions."""
# Time limits of a role or server that would end our long sessions, by the version that introduced
# them: an older server refuses their names.
LIMITS = {140000: "idle_session_timeout", 170000: "transaction_timeout"}


def _root_certificate() -> str | None:
    named = os.environ.get("PGSSLROOTCERT")
    own = Path.home() / ".postgresql" / "root.crt"
    return None if named or own.exists() else "system"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def limited(options: Mapping[str, str]) -> dict[str, str]:
    """The options, with the time of a look as the limit of each statement."""
    seconds = limits.statement_seconds()
    told = {} if seconds is None else {"statement_timeout": f"{seconds * 1000:.0f}"}
    return {**options, **told}


def connection_string(
    server: Server, options: Mapping[str, str], *, name: str = "replicator", **more: Any
) -> str:
    """A libpq connection string; `name` is the application's name at the server. It holds the
    password: never log it."""
    values: dict[str, Any] = {
        "host": server.host,
        "port": server.port,
        "dbname": server.database,
        "user": server.user,
        "password": server.password or None,
        "sslmode": server.sslmode,
        "connect_timeout": int(limits.left(CONNECT_SECONDS)),
        "application_name": name,
        "client_encoding": "UTF8",
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": int(limits.left(SILENT_SECONDS) * 1000),
        "options": " ".join(f"-c {k}={_escaped(v)}" for k, v in limited(options).items()),
    }
    if server.sslmode == "verify-full":
        values["sslrootcert"] = _root_certificate()
    return conninfo.make_conninfo("", **{**values, **more})


def open_connection(
    server: Server, options: Mapping[str, str], *, name: str = "replicator"
) -> psycopg.Connection[tuple[Any, ...]]:
    """An ordinary connection in autocommit. psycopg.Error where that fails."""
    text = connection_string(server, options, name=name)
    made = psycopg.connect(text, autocommit=True, prepare_threshold=None)
    limits.watch(made.fileno())
    version = made.info.server_version
    lifted = [f"SET {limit} = 0" for since, limit in LIMITS.items() if version >= since]
    if lifted:
        made.execute("; ".join(lifted))
    return made
