"""Snowflake, as its emulator plays it, as the target of tests; read as anybody reads Snowflake."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import closing
from typing import Any

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, Bytes, Float, Json, LogicalType, String, Time
from replicators.targets.snowflake.connection import connect, rows
from replicators.targets.snowflake.naming import quoted
from replicators.targets.snowflake.params import SnowflakeParams
from tests.snowflake_server import SnowflakeServer

OF_MODES = {c.name: c.type for mode in Mode for c in extra_columns(mode)}
"""The types of the columns that modes add."""


def params_of(server: SnowflakeServer, database: str) -> dict[str, Any]:
    """The params of a database of its own, which is made when somebody signs in."""
    return {
        "account": "emulated",
        "user": "REPLICATOR",
        "password": "any",
        "database": database,
        "warehouse": "LOADS",
        "endpoint": server.url,
        "suspends": True,
    }


def asked(params: SnowflakeParams, *statements: str) -> list[dict[str, Any]]:
    """The rows of the last statement."""
    found: list[dict[str, Any]] = []
    with closing(connect(params)) as connection:
        for text in statements:
            found = rows(connection, text)
    return found


def neutral_rows(params: SnowflakeParams, schema: TableSchema) -> list[dict[str, Any]]:
    """All rows of a copy, with the mode's columns, in the values that a source has."""
    kinds = {**OF_MODES, **{c.name: c.type for c in schema.columns}}
    place = (params.database, params.schema or schema.id.schema, schema.id.name)
    with closing(connect(params)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {quoted(place)}")
        names = [d[0] for d in cursor.description]
        return [
            {n: neutral(v, kinds.get(n, String())) for n, v in zip(names, row, strict=True)}
            for row in cursor.fetchall()
        ]


def neutral(value: Any, kind: LogicalType) -> Any:
    """A value of a copy as its source has it."""
    match kind, value:
        case _, None:
            return None
        case Array(), str():
            return json.loads(value)
        case Json(), str():
            return json.dumps(json.loads(value))
        case Bytes(), _:
            return bytes(value)
        case Float(), _:
            return float(value)
        case Time(), dt.time():
            return value.isoformat("microseconds")
    return value
