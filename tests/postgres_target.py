"""A PostgreSQL target for tests: its params as a plain role, and its writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replicators.connectors.params import parse
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


def writer_of(params: PostgresqlTargetParams, folder: Path) -> SqlMergeTarget:
    """A writer whose snapshot files wait in this folder."""
    return writer(params, str(folder / "files"))
