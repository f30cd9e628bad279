"""Fixtures that the contract tests of all SQL targets share: dead servers, writers, and rows."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.target import TargetFixtures
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin
from runners.engine.tasks.local import LocalTasks
from tests.sql_modes import Records

NeutralRows = Callable[[TableSchema], list[dict[str, Any]]]


class SqlTargetFixtures(TargetFixtures):
    """Supply `name`, `params`, and `neutral` (all rows of a table, in the values of a source)."""

    name: ClassVar[str]

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()[self.name]

    @pytest.fixture
    def neutral(self) -> NeutralRows:
        """Reads a live table."""
        raise NotImplementedError

    @pytest.fixture
    def dead_params(self, params: Any) -> Any:
        return self.at_port(params, free_port())

    def at_port(self, params: Any, port: int) -> Any:
        """The same params with another port of this machine."""
        return dataclasses.replace(params, host="127.0.0.1", port=port)

    @pytest.fixture
    def writer(self, plugin: TargetPlugin, params: Any, tmp_path: Path) -> Iterator[MergeTarget]:
        made: Any = plugin.writer(params, LocalTasks(folder=str(tmp_path / "files")))
        yield made
        made.close()

    @pytest.fixture
    def another(
        self, plugin: TargetPlugin, params: Any, tmp_path: Path
    ) -> Iterator[Callable[[], MergeTarget]]:
        """Another writer of the same place."""
        with ExitStack() as stack:

            def made() -> MergeTarget:
                one: Any = plugin.writer(params, LocalTasks(folder=str(tmp_path / "other")))
                return stack.enter_context(closing(one))

            yield made

    @pytest.fixture
    def read(self, neutral: NeutralRows) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        def rows(schema: TableSchema) -> list[tuple[Any, ...]]:
            return sorted((tuple(r.values()) for r in neutral(schema)), key=lambda row: row[0])

        return rows

    @pytest.fixture
    def records(self, neutral: NeutralRows) -> Records:
        """The source's columns of all rows."""

        def rows(schema: TableSchema) -> list[dict[str, Any]]:
            wanted = [c.name for c in schema.columns]
            return [{n: row[n] for n in wanted} for row in neutral(schema)]

        return rows


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
