"""The statements that `connectors.sql` makes, run by real servers: they leave the rows that one
MERGE leaves in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from replicators.connectors.sql import engines
from tests.mysql_servers import SqlServer, fresh_sql_database
from tests.servers import Database
from tests.sql_dialects import DIALECTS, DUCKDB, native
from tests.sql_world import MODES, Rows, Runs, many

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
WORLDS = 12


@pytest.fixture(scope="module")
def twin() -> Iterator[Runs]:
    """DuckDB, where the same statements run as one MERGE."""
    with duckdb.connect(config={"threads": 1}) as db:
        yield lambda text: db.execute(text).fetchall()


@pytest.mark.oldest_postgresql(is_long=True)
def test_postgresql_runs_the_statements_of_every_mode(database: Database, twin: Runs) -> None:
    """Guards what PostgreSQL's MERGE demands (no prefix in SET, a full join that can be hashed) and
    the path without it."""
    with database.connect() as connection:
        version = connection.info.server_version // 10_000
        dialects = [engines.postgresql(native("postgres"), version), DIALECTS["postgres14"]]

        def run(text: str) -> Rows:
            found = connection.execute(text.encode(), prepare=False)
            return found.fetchall() if found.description else []

        for mode, no_inserts in MODES:
            for world in many(WORLDS, mode, no_inserts=no_inserts):
                expected = world.after(DUCKDB, twin, "main")
                for dialect in dialects:
                    assert world.after(dialect, run, "public") == expected, (mode, world.batch)


def test_mysql_runs_the_statements_of_every_mode(mysql: SqlServer, twin: Runs) -> None:
    """Guards the path of several statements: MySQL refuses an UPDATE that reads its own table, and
    names the tables of a DELETE before they are joined."""
    with fresh_sql_database(mysql) as database, database.connect() as connection:

        def run(text: str) -> list[tuple[Any, ...]]:
            with connection.cursor() as cursor:
                cursor.execute(text)
                return list(cursor.fetchall())

        for mode, no_inserts in MODES:
            for world in many(WORLDS, mode, no_inserts=no_inserts):
                expected = world.after(DUCKDB, twin, "main")
                found = world.after(DIALECTS["mysql"], run, database.name)
                assert found == expected, (mode, world.batch)
