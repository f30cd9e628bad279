"""The PostgreSQL source keeps the promises of every source."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.source import ByteLogContract
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from replicators.connectors.source import SourcePlugin
from tests.servers import Database

pytestmark = [
    pytest.mark.contract,
    pytest.mark.integration,
    pytest.mark.timeout(180),
    pytest.mark.oldest_postgresql,
]


class TestPostgresql(ByteLogContract):
    """Over a database of each test's own."""

    @pytest.fixture
    def plugin(self) -> SourcePlugin:
        return registry.sources()["postgresql"]

    @pytest.fixture
    def params(self, plugin: SourcePlugin, database: Database) -> Any:
        return parse(plugin.params, database.params)

    @pytest.fixture
    def dead_params(self, params: Any) -> Any:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return dataclasses.replace(params, host="127.0.0.1", port=free.getsockname()[1])

    @pytest.fixture
    def table(self, database: Database) -> TableId:
        database.execute("CREATE TABLE numbers (id int PRIMARY KEY, pad text)")
        database.execute(
            f"INSERT INTO numbers SELECT g, repeat('p', 500) FROM generate_series(1, {self.rows}) g"
        )
        database.execute("ANALYZE numbers")
        return TableId("public", "numbers")

    @pytest.fixture
    def insert(self, database: Database) -> Callable[[int], None]:
        return lambda number: database.execute(f"INSERT INTO numbers VALUES ({number}, 'new')")
