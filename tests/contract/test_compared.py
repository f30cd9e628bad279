"""The source that compares deliveries keeps the promises of every source that is polled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.contract.source import ChangePollContract
from replicators.connectors.model.schema import TableId
from replicators.connectors.source import SourcePlugin
from replicators.sources.compared import PLUGIN
from replicators.sources.compared.params import ComparedParams
from replicators.sources.compared.poll import ComparedPoll
from runners.engine.tasks.on_spark import SparkTasks
from tests.compared_world import SCHEMA_NAME, Inbox, line

pytestmark = [pytest.mark.contract, pytest.mark.spark, pytest.mark.timeout(180), pytest.mark.long]


class TestCompared(ChangePollContract):
    """Each row that is inserted comes with a delivery of all rows."""

    rows = 40

    @pytest.fixture
    def inbox(self, tmp_path: Path) -> Inbox:
        return Inbox(tmp_path)

    @pytest.fixture
    def plugin(self, spark: Any) -> SourcePlugin:
        """The plugin, with the tasks that the engine would give to its reader."""
        assert PLUGIN.poll is not None

        def reader(params: ComparedParams, name: str) -> ComparedPoll:
            made = ComparedPoll(params, name)
            made.use_tasks(SparkTasks(spark), lambda rows: None)
            return made

        return dataclasses.replace(PLUGIN, poll=dataclasses.replace(PLUGIN.poll, reader=reader))

    @pytest.fixture
    def params(self, inbox: Inbox) -> ComparedParams:
        return inbox.params()

    @pytest.fixture
    def dead_params(self, tmp_path: Path) -> ComparedParams:
        (tmp_path / "file").write_text("a file where the folders should be")
        place = f"{tmp_path}/file"
        return ComparedParams(files=f"{place}/in/{{table}}.csv", state=place, keys="id")

    @pytest.fixture
    def table(self, inbox: Inbox) -> TableId:
        inbox.deliver("0", [line(n) for n in range(1, self.rows + 1)])
        return TableId(SCHEMA_NAME, "people")

    @pytest.fixture
    def insert(self, inbox: Inbox) -> Callable[[int], None]:
        def commit(number: int) -> None:
            rows = [line(n) for n in range(1, number + 1)]
            inbox.deliver(str(number), rows)

        return commit
