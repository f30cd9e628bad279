"""MySQL and MariaDB as a target keep the promises of every target."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from tests.contract.sql_targets import NeutralRows, SqlTargetFixtures
from tests.mysql_servers import SqlDatabase, fresh_sql_database
from tests.mysql_target import (
    USER,
    durable_server,
    neutral_rows,
    plain_writer,
    quoted,
    taking_files,
)
from tests.sql_modes import SqlModes
from tests.sql_views import Shown, SqlViews, Statement

pytestmark = [pytest.mark.contract, pytest.mark.integration, pytest.mark.timeout(180)]


class MysqlTargetFixtures(SqlTargetFixtures):
    """Into a database of each test's own, as a user with the rights on it and nothing else. MariaDB
    gets its rows by LOAD DATA, MySQL by INSERTs (its default) and then by LOAD DATA. By INSERTs the
    user may make no temporary tables."""

    name = "mysql"

    @pytest.fixture(
        params=[
            pytest.param(("mariadb", True), id="mariadb"),
            pytest.param(("mysql", False), id="mysql", marks=pytest.mark.long),
            pytest.param(("mysql", True), id="mysql_load_data", marks=pytest.mark.long),
        ]
    )
    def database(self, request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
        flavour, loads = request.param
        server = request.getfixturevalue(flavour)
        with fresh_sql_database(server) as made, taking_files(server, loads):
            yield made

    @pytest.fixture
    def params(self, plugin: TargetPlugin, database: SqlDatabase) -> Any:
        loads = database.server.execute("SELECT @@local_infile")[0][0]
        given = plain_writer(database, is_temporary=bool(int(loads)))
        return parse(plugin.params, {**given, "database": database.name})

    @pytest.fixture
    def neutral(self, database: SqlDatabase) -> NeutralRows:
        return lambda schema: neutral_rows(database, schema)


class TestMysqlTarget(MysqlTargetFixtures, TargetContract):
    """Staging, token, generations, owners."""

    @pytest.fixture(autouse=True)
    def durable(self, database: SqlDatabase) -> Iterator[None]:
        """A server that loses no commit, as users have it: the checks warn of others."""
        with durable_server(database.server):
            yield


class TestMysqlMerging(MysqlTargetFixtures, MergeContract):
    """Modes, columns and fences."""

    @pytest.fixture
    def replaced_by_hand(self, database: SqlDatabase) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            table, other = quoted(schema.id.name), quoted(f"{schema.id.name}_new")
            database.execute(
                f"CREATE TABLE {other} AS SELECT * FROM {table} WHERE false",
                f"DROP TABLE {table}",
                f"RENAME TABLE {other} TO {table}",
            )

        return replaced


class TestMysqlReading(MysqlTargetFixtures, ReadingContract):
    """Rows that are read back. Two connections of MySQL can't share a snapshot."""

    fixes_version = False


class TestMysqlModes(MysqlTargetFixtures, SqlModes):
    """Every mode against a naive replay."""


class TestMysqlViews(MysqlTargetFixtures, SqlViews):
    """Views of the living rows. A view that shows a column that is gone can't be read for a
    moment."""

    @pytest.fixture
    def params(self, plugin: TargetPlugin, database: SqlDatabase) -> Any:
        given = plain_writer(database)
        database.execute(f"GRANT CREATE VIEW ON {quoted(database.name)}.* TO {USER}@'%'")
        return parse(plugin.params, {**given, "database": database.name})

    @pytest.fixture
    def shown(self, database: SqlDatabase) -> Shown:
        def rows(name: str) -> list[dict[str, Any]]:
            with database.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {quoted(name)} ORDER BY 1")
                names = [d[0] for d in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        return rows

    @pytest.fixture
    def statement(self, database: SqlDatabase) -> Statement:
        return lambda text: database.execute(text.replace("{", "`").replace("}", "`"))

    def test_a_missing_right_is_told_before(
        self, plugin: TargetPlugin, params: Any, database: SqlDatabase
    ) -> None:
        """Guards the check of the right: without it the first copy would fail at its end."""
        database.execute(f"REVOKE CREATE VIEW ON {quoted(database.name)}.* FROM {USER}@'%'")
        for has_views, codes in ((False, set()), (True, {"target:mysql-rights"})):
            given = dataclasses.replace(params, current_views=has_views)
            with plugin.checks(given) as checks:
                found = [p for p in checks.connection() if p.code == "target:mysql-rights"]
                assert {p.code for p in found} == codes
                assert all("CREATE VIEW" in p.message.text for p in found)
