"""A PostgreSQL target for tests: its params as a plain role, its writer, and its rows read without
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.postgres import sql
from replicators.connectors.sql import engines
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.writer import writer
from tests.servers import Database

ROLE = "plain_writer"


def writer_params(database: Database, **values: Any) -> PostgresqlTargetParams:
    """Params of a role that may log in, and make schemas in this database, and nothing else."""
    found = database.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE])
    given = {**database.params, "user": ROLE} if found else database.user(ROLE)
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {ROLE}")
    return parse(PostgresqlTargetParams, {**given, **values})


def writer_of(
    params: PostgresqlTargetParams, folder: Path, *, version: int | None = None
) -> SqlMergeTarget:
    """A writer. With a `version` it writes as for a server of that version, which a newer one
    understands."""
    made = writer(params, str(folder / "files"))
    if version is not None:
        client: Any = made._client
        client.dialect = made._dialect = engines.postgresql(made._dialect.native, version)
    return made


def reader_of(database: Database) -> Callable[[TableSchema], list[dict[str, Any]]]:
    """Reads a live table's rows by column name, in any order."""

    def rows(schema: TableSchema) -> list[dict[str, Any]]:
        names = sql.names(c.name for c in schema.supported)
        text = f"SELECT {names} FROM {sql.table(schema.id)}"
        with database.connect(row_factory=dict_row) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return list(connection.execute(text.encode()).fetchall())

    return rows


def moved_port(params: PostgresqlTargetParams, port: int) -> PostgresqlTargetParams:
    """The same database behind another port."""
    return replace(params, port=port)
