"""Redshift, as a PostgreSQL server plays it, as the target of tests; read as anybody reads it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from psycopg.types.string import TextLoader

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, Bytes, Json, LogicalType, String, Time
from replicators.targets.redshift.connection import connect
from replicators.targets.redshift.naming import quoted
from replicators.targets.redshift.params import RedshiftParams
from tests.redshift_server import ROLE, RedshiftServer
from tests.servers import Database
from tests.stores import Keys

OF_MODES = {c.name: c.type for mode in Mode for c in extra_columns(mode)}
"""The types of the columns that modes add."""
USER = "plain_loader"


def params_of(server: RedshiftServer, database: Database, keys: Keys) -> dict[str, Any]:
    """The params of a user that may make schemas in this database, and nothing else."""
    known = database.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [USER])
    if not known:
        database.user(USER)
    database.execute(f"GRANT CREATE, TEMPORARY ON DATABASE {database.name} TO {USER}")
    return {
        "host": "127.0.0.1",
        "port": server.port,
        "database": database.name,
        "user": USER,
        "password": database.server.password,
        "sslmode": "prefer",
        "staging": f"s3://{server.store.bucket}/staging",
        "role": ROLE,
        "s3_endpoint": server.store.endpoint,
        "s3_region": "us-east-1",
        "s3_access_key": keys.access,
        "s3_secret_key": keys.secret,
    }


def neutral_rows(params: RedshiftParams, schema: TableSchema) -> list[dict[str, Any]]:
    """All rows of a copy, with the mode's columns, in the values that a source has."""
    kinds = {**OF_MODES, **{c.name: c.type for c in schema.columns}}
    place = quoted((params.schema or schema.id.schema, schema.id.name))
    with closing(connect(params)) as connection:
        for name in ("json", "jsonb"):  # read as text: JSON's null is no NULL
            connection.adapters.register_loader(name, TextLoader)
        cursor = connection.execute(f"SELECT * FROM {place}".encode())
        names = [d.name for d in cursor.description or ()]
        return [
            {n: neutral(v, kinds.get(n, String())) for n, v in zip(names, row, strict=True)}
            for row in cursor.fetchall()
        ]


def neutral(value: Any, kind: LogicalType) -> Any:
    """A value of a copy as its source has it."""
    match kind:
        case _ if value is None:
            return None
        case Json():
            return json.dumps(json.loads(value))
        case Array():
            return json.loads(value)
        case Bytes():
            return value
        case Time():
            return value.isoformat("microseconds")
    return value
