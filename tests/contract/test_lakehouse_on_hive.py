"""Views of the living rows in a Hive metastore. The metastore is Hive 2.3.10, whose jars PySpark
brings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.iceberg import Iceberg
from replicators.targets.lakehouse.params import LakehouseParams
from tests.contract.test_lakehouse import LakehouseFixtures
from tests.hive_metastore import HiveMetastore
from tests.lakehouse_views import LakehouseViews

pytestmark = [pytest.mark.contract, pytest.mark.spark, pytest.mark.long]
NAME = "hived"


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    with HiveMetastore() as made:
        yield made


class TestHiveViews(LakehouseFixtures, LakehouseViews):
    """Views of the living rows."""

    @pytest.fixture
    def params(
        self,
        metastore: HiveMetastore,
        lakehouse_root: Path,
        spark: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> LakehouseParams:
        """The session of all tests began without the catalog: its settings are set in each of its
        sessions."""
        made = LakehouseParams(
            warehouse=str(lakehouse_root / "hive"),
            catalog="hive",
            catalog_uri=metastore.uri,
            catalog_name=NAME,
            catalog_locks=False,
        )
        start = f"spark.sql.catalog.{NAME}"
        own = {k: v for k, v in PLUGIN.spark_conf(made).items() if k.startswith(start)}
        for name, value in own.items():
            spark.conf.set(name, value)
        monkeypatch.setattr(Iceberg, "session_conf", {**Iceberg.session_conf, **own})
        return made
