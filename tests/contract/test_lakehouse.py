"""The lakehouse target keeps the promises of every target, in both formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin
from replicators.targets.lakehouse.params import LakehouseParams
from runners.engine.tasks.on_spark import SparkTasks
from tests.spark.lakehouses import Lakehouse
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.contract, pytest.mark.spark]


@pytest.mark.parametrize("form", ["iceberg", "delta"])
class TestLakehouse(TargetContract):
    """Read by the formats' own Python readers."""

    @pytest.fixture
    def plugin(self) -> TargetPlugin:
        return registry.targets()["lakehouse"]

    @pytest.fixture
    def params(self, lakehouse_root: Path, form: str) -> LakehouseParams:
        return lakehouse_params(lakehouse_root, form)

    @pytest.fixture
    def dead_params(self, tmp_path: Path, form: str) -> LakehouseParams:
        (tmp_path / form).write_text("a file where the warehouse should be")
        return lakehouse_params(tmp_path, form)

    @pytest.fixture
    def writer(self, plugin: TargetPlugin, params: LakehouseParams, spark: Any) -> MergeTarget:
        return plugin.writer(params, SparkTasks(spark))

    @pytest.fixture
    def read(
        self, params: LakehouseParams, writer: Any, tmp_path: Path
    ) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        return Lakehouse(params, writer, tmp_path).read
