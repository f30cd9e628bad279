"""MySQL and MariaDB as targets of tests."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, Boolean, LogicalType, Time, Timestamp
from replicators.targets.mysql.params import RIGHTS, TEMPORARY_RIGHT
from tests.mysql_servers import HOST, SqlDatabase, SqlServer

USER, PASSWORD = "plain_writer", "writer-pass'1"


def quoted(name: str) -> str:
    """A name as an identifier."""
    return "`" + name.replace("`", "``") + "`"


def plain_writer(database: SqlDatabase, *, is_temporary: bool = True) -> dict[str, Any]:
    """The params of a user that has the rights which the set-up names on this database.
    `is_temporary`: also the one that may be missing."""
    rights = (*RIGHTS, TEMPORARY_RIGHT) if is_temporary else RIGHTS
    password = PASSWORD.replace("'", "''")
    database.execute(
        f"CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{password}'",
        f"GRANT {', '.join(rights)} ON {quoted(database.name)}.* TO {USER}@'%'",
    )
    return {"host": HOST, "port": database.server.port, "user": USER, "password": PASSWORD}


@contextmanager
def durable_server(server: SqlServer) -> Iterator[None]:
    """The server syncs every commit meanwhile."""
    settings = ("innodb_flush_log_at_trx_commit", "sync_binlog")
    server.execute(*(f"SET GLOBAL {name} = 1" for name in settings))
    try:
        yield
    finally:
        server.execute(*(f"SET GLOBAL {name} = 0" for name in settings))


@contextmanager
def taking_files(server: SqlServer, takes: bool) -> Iterator[None]:
    """The server allows LOAD DATA LOCAL meanwhile, or forbids it."""
    before = server.execute("SELECT @@local_infile")[0][0]
    server.execute(f"SET GLOBAL local_infile = {int(takes)}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL local_infile = {before}")


OF_MODES = {c.name: c.type for mode in Mode for c in extra_columns(mode)}
"""The types of the columns that modes add."""


def neutral_rows(database: SqlDatabase, schema: TableSchema) -> list[dict[str, Any]]:
    """All rows of a copy, with the mode's columns, in the values that a source has."""
    kinds = {**OF_MODES, **{c.name: c.type for c in schema.columns}}
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {quoted(schema.id.name)}")
        names = [d[0] for d in cursor.description or ()]
        return [
            {n: neutral(v, kinds[n]) for n, v in zip(names, row, strict=True)}
            for row in cursor.fetchall()
        ]


def neutral(value: Any, kind: LogicalType) -> Any:
    """A value of a copy as its source has it."""
    match kind, value:
        case _, None:
            return None
        case Boolean(), _:
            return bool(value)
        case Array(), str():
            return json.loads(value)
        case Timestamp(zone=True), dt.datetime():
            return value.replace(tzinfo=dt.UTC)
        case Time(), dt.timedelta():
            return (dt.datetime.min + value).time()
    return value
