"""Views of the living rows in a Hive metastore that lists Iceberg's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import TargetPlugin
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.iceberg import Iceberg
from replicators.targets.lakehouse.params import LakehouseParams
from tests.contract.test_lakehouse import LakehouseFixtures
from tests.hive_metastore import HiveMetastore
from tests.lakehouse_views import LakehouseViews
from tests.spark.lakehouses import Lakehouse

pytestmark = [pytest.mark.contract, pytest.mark.spark, pytest.mark.long]
NAME = "hived"


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    with HiveMetastore() as made:
        yield made


class Hived(Lakehouse):
    """Its tables are listed by the metastore."""

    def catalog(self) -> Any:
        from pyiceberg.catalog.hive import HiveCatalog

        return HiveCatalog(NAME, uri=self.params.catalog_uri)


class TestHiveViews(LakehouseFixtures, LakehouseViews):
    """The metastore compares versions: it has no tables of locks."""

    @pytest.fixture
    def form(self) -> str:
        return "iceberg"

    @pytest.fixture
    def params(
        self,
        metastore: HiveMetastore,
        lakehouse_root: Path,
        plugin: TargetPlugin,
        spark: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> LakehouseParams:
        """The session of all tests began without the catalog: its settings are set in each of its
        sessions."""
        made = LakehouseParams(
            warehouse=str(lakehouse_root / "hive"),
            catalog="hive",
            catalog_uri=metastore.uri,
            catalog_locks=False,
            catalog_name=NAME,
        )
        prefix = f"spark.sql.catalog.{NAME}"
        own = {k: v for k, v in plugin.spark_conf(made).items() if k.startswith(prefix)}
        for name, value in own.items():
            spark.conf.set(name, value)
        monkeypatch.setattr(Iceberg, "session_conf", {**Iceberg.session_conf, **own})
        return made

    @pytest.fixture
    def read(
        self, params: LakehouseParams, writer: Any, tmp_path: Path
    ) -> Callable[[TableSchema], list[tuple[Any, ...]]]:
        return Hived(params, writer, tmp_path).read

    def test_the_assessment_makes_a_view_and_leaves_nothing(
        self, params: LakehouseParams, wide: TableSchema
    ) -> None:
        with LakehouseChecks(replace(params, current_views=True)) as checks:
            assert checks.tables([wide], "") == []
