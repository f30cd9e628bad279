"""The views of the living rows in a lakehouse's catalog, read by Spark. A test class inherits
`LakehouseViews` beside its fixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.target import MergeTarget, TargetPlugin
from runners.engine.tasks.on_spark import SparkTasks
from tests.sql_views import Opened, Shown, SqlViews, Statement


class LakehouseViews(SqlViews):
    """As the views of SQL targets: same option, same names, same refusals."""

    @pytest.fixture
    def viewing(self, plugin: TargetPlugin, params: Any, spark: Any) -> Opened:
        def opened(**given: Any) -> MergeTarget:
            asked = replace(params, **{"current_views": True, **given})
            return plugin.writer(asked, SparkTasks(spark))

        return opened

    @pytest.fixture
    def place(self, params: Any) -> Callable[[str], str]:
        """The name of a table or view in SQL."""
        return lambda name: f"`{params.catalog_name}`.`contract`.`{name}`"

    @pytest.fixture
    def shown(self, place: Callable[[str], str], spark: Any) -> Shown:
        def rows(name: str) -> list[dict[str, Any]]:
            found = spark.sql(f"SELECT * FROM {place(name)} ORDER BY 1").collect()
            return [row.asDict() for row in found]

        return rows

    @pytest.fixture
    def statement(self, place: Callable[[str], str], spark: Any) -> Statement:
        def run(text: str) -> None:
            before, _, rest = text.partition("{")
            name, _, after = rest.partition("}")
            spark.sql(f"{before}{place(name)}{after}")

        return run
