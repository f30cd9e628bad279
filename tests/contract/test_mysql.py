"""The MySQL source keeps the promises of every source, on MariaDB and on MySQL."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.source import ByteLogContract
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from replicators.connectors.source import SourcePlugin
from tests.mysql_servers import SqlDatabase, fresh_sql_database

pytestmark = [pytest.mark.contract, pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.mark.parametrize("flavour", ["mariadb", "mysql"])
class TestMysql(ByteLogContract):
    """Over a database of each test's own."""

    leaves_traces = False

    @pytest.fixture
    def plugin(self) -> SourcePlugin:
        return registry.sources()["mysql"]

    @pytest.fixture
    def server_database(
        self, flavour: str, request: pytest.FixtureRequest
    ) -> Iterator[SqlDatabase]:
        with fresh_sql_database(request.getfixturevalue(flavour)) as made:
            yield made

    @pytest.fixture
    def params(self, plugin: SourcePlugin, server_database: SqlDatabase) -> Any:
        return parse(plugin.params, server_database.params)

    @pytest.fixture
    def dead_params(self, params: Any) -> Any:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return dataclasses.replace(params, host="127.0.0.1", port=free.getsockname()[1])

    @pytest.fixture
    def table(self, server_database: SqlDatabase) -> TableId:
        server_database.execute(
            "CREATE TABLE numbers (id int PRIMARY KEY, pad text)",
            "INSERT INTO numbers WITH RECURSIVE g AS (SELECT 1 n UNION ALL SELECT n + 1 FROM g"
            f" WHERE n < {self.rows}) SELECT n, repeat('p', 500) FROM g",
            "ANALYZE TABLE numbers",
        )
        return TableId(server_database.name, "numbers")

    @pytest.fixture
    def insert(self, server_database: SqlDatabase) -> Callable[[int], None]:
        def insert(number: int) -> None:
            server_database.execute(f"INSERT INTO numbers VALUES ({number}, 'new')")

        return insert
