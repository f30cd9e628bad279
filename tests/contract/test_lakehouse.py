"""The lakehouse target keeps the promises of every target, in both formats."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors import registry
from replicators.connectors.contract.merging import MergeContract, MergeFixtures
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract, TargetFixtures
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import MergeTarget, TargetPlugin
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.params import LakehouseParams
from runners.engine.tasks.on_spark import SparkTasks
from tests.lakehouse_views import LakehouseViews
from tests.spark.lakehouses import Lakehouse
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.contract, pytest.mark.spark]


class LakehouseFixtures(TargetFixtures):
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

    @pytest.fixture
    def another(
        self, plugin: TargetPlugin, params: LakehouseParams, spark: Any
    ) -> Callable[[], MergeTarget]:
        return lambda: plugin.writer(params, SparkTasks(spark))

    @pytest.fixture
    def replaced_by_hand(
        self, params: LakehouseParams, writer: Any, spark: Any
    ) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            names = writer.names(schema.id)
            path = writer.format.path(names)
            if params.format == "iceberg":
                spark.sql(f"DROP TABLE {path}")
            else:
                shutil.rmtree(writer.format.folder(names))
            spark.sql(
                dialect.create(
                    path, schema, provider=params.format, location="", values={"by": "hand"}
                )
            )

        return replaced


@pytest.mark.parametrize("form", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
class TestLakehouse(LakehouseFixtures, TargetContract):
    """Staging, token, generations, owners."""


@pytest.mark.parametrize("form", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
class TestLakehouseMerging(LakehouseFixtures, MergeContract):
    """Modes, columns and fences."""


@pytest.mark.parametrize("form", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
class TestLakehouseReading(LakehouseFixtures, ReadingContract):
    """Rows that are read back."""


@pytest.mark.long
@pytest.mark.parametrize("form", ["iceberg"])
class TestLakehouseViews(LakehouseFixtures, LakehouseViews):
    """Views of the living rows, in a catalog of a database."""


@pytest.mark.long
@pytest.mark.parametrize("form", ["delta"])
class TestDeltaReading(LakehouseFixtures, MergeFixtures):
    """Delta's reader gives every type, and sees deletion vectors."""

    every = ReadingContract.every
    test_every_type = ReadingContract.test_rows_come_back_as_the_source_had_them
