"""PostgreSQL as a target keeps the promises of every target, on the newest and oldest server."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.params import parse
from replicators.connectors.target import MergeTarget, TargetPlugin
from runners.engine.tasks.local import LocalTasks
from tests.servers import Database

pytestmark = [
    pytest.mark.contract,
    pytest.mark.integration,
    pytest.mark.timeout(180),
    pytest.mark.oldest_postgresql,
]


class TestPostgresqlTarget(TargetContract):
    """Into a database of each test's own, as a role that may make schemas and nothing else."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["postgresql"]

    @pytest.fixture
    def params(self, plugin: TargetPlugin, database: Database) -> Any:
        database.execute("DROP ROLE IF EXISTS plain_writer")
        given = database.user("plain_writer")
        database.execute(f"GRANT CREATE ON DATABASE {database.name} TO plain_writer")
        return parse(plugin.params, given)

    @pytest.fixture
    def dead_params(self, params: Any) -> Any:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return dataclasses.replace(params, host="127.0.0.1", port=free.getsockname()[1])

    @pytest.fixture
    def writer(self, plugin: TargetPlugin, params: Any, tmp_path: Path) -> Iterator[MergeTarget]:
        made: Any = plugin.writer(params, LocalTasks(folder=str(tmp_path / "files")))
        yield made
        made.close()

    @pytest.fixture
    def read(self, database: Database) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            return database.execute(
                f'SELECT id, note FROM "{schema.id.schema}"."{schema.id.name}" ORDER BY id'
            )

        return rows
