"""Connections to the target, and the settings of their sessions. psycopg sends a text without
parameters as a simple query, which Redshift has; it prepares no statements."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import conninfo

from replicators.connectors import limits
from replicators.connectors.postgres import connections
from replicators.targets.redshift.errors import FAULTS, translate
from replicators.targets.redshift.params import RedshiftParams

Connection = psycopg.Connection[tuple[Any, ...]]
APPLICATION = "replicator-target"
SETTINGS = {
    "enable_case_sensitive_identifier": "true",
    "datestyle": "'ISO'",
    "timezone": "'UTC'",
    "extra_float_digits": "2",
    "query_group": "'replicators'",
}


def connect(params: RedshiftParams) -> Connection:
    """Open a connection in autocommit. ReplicationError where that fails. Redshift takes settings
    by SET only."""
    text = connections.connection_string(params, {}, name=APPLICATION)
    text = conninfo.make_conninfo(text, options="")
    seconds = limits.statement_seconds()
    settings = SETTINGS if seconds is None else {
        **SETTINGS, "statement_timeout": f"{seconds * 1000:.0f}"
    }  # fmt: skip
    try:
        made = psycopg.connect(text, autocommit=True, prepare_threshold=None)
        limits.watch(made.fileno())
        for name, value in settings.items():
            made.execute(f"SET {name} TO {value}".encode())
    except FAULTS as err:
        raise translate(err, params) from err
    return made


def rows(connection: Connection, text: str) -> list[tuple[Any, ...]]:
    """The rows of a statement; none where it has none. The driver's errors pass through."""
    cursor = connection.execute(text.encode())
    return cursor.fetchall() if cursor.description else []
