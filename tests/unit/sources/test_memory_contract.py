"""The in-memory source keeps the promises of a source that is polled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.source import ChangePollContract
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.params import parse
from replicators.connectors.source import SourcePlugin
from replicators.sources.memory.database import Database, database, insert

TABLE = TableSchema(
    TableId("contract", "notes"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("note", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
    900,
)


def _row(number: int) -> dict[str, Any]:
    return {"id": number, "note": f"note {number}"}


class TestMemory(ChangePollContract):
    """Without a server: a database of each test's own."""

    @pytest.fixture
    def plugin(self) -> SourcePlugin:
        return registry.sources()["memory"]

    @pytest.fixture
    def params(self, plugin: SourcePlugin, request: pytest.FixtureRequest) -> Any:
        return parse(plugin.params, {"host": f"{request.node.name}.example"})

    @pytest.fixture
    def dead_params(self, plugin: SourcePlugin) -> Any:
        return parse(plugin.params, {"host": "dead.example", "fault": "unreachable"})

    @pytest.fixture
    def held(self, params: Any) -> Database:
        made = database(params.host)
        made.create(TABLE)
        made.commit(*(insert(TABLE.id, _row(n)) for n in range(1, self.rows + 1)))
        return made

    @pytest.fixture
    def table(self, held: Database) -> TableId:
        return TABLE.id

    @pytest.fixture
    def insert(self, held: Database) -> Callable[[int], None]:
        return lambda number: held.commit(insert(TABLE.id, _row(number))) and None
