"""A source that is polled, on Spark into Iceberg: what its tests without a JVM leave open is
whether tasks and lakehouse take it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.schema import TableId
from replicators.connectors.target import TargetPlugin
from replicators.sources.memory.database import database
from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.naming import names
from replicators.targets.lakehouse.params import LakehouseParams
from tests.local.polled import VIEWS, PolledWorld, change_all
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark
SPARK_SECONDS = 200.0


class LakehouseWorld(PolledWorld):
    """Read by Iceberg's own Python reader."""

    def __init__(self, folder: Path, name: str, params: LakehouseParams) -> None:
        super().__init__(folder, name)
        self.params = params

    def target(self) -> tuple[TargetPlugin, Any]:
        return PLUGIN, self.params

    def records(self, table: TableId) -> list[dict[str, Any]]:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NoSuchTableError

        params = self.params
        catalog = SqlCatalog(
            params.catalog_name, uri=params.catalog_uri, warehouse=params.warehouse
        )
        try:
            rows = catalog.load_table(names(params, table)).scan().to_arrow()
        except NoSuchTableError:
            return []
        found: list[dict[str, Any]] = rows.to_pylist()
        return found


@pytest.fixture
def world(lakehouse_root: Path, tmp_path: Path) -> Iterator[LakehouseWorld]:
    yield LakehouseWorld(tmp_path, "polled", lakehouse_params(lakehouse_root, "iceberg"))
    database.cache_clear()


def test_snapshot_and_polled_changes_reach_iceberg(world: LakehouseWorld, spark: Any) -> None:
    """Guards the chunks of a source that are no SQL, read in Spark's own processes, and change
    files that no task wrote. Rows without a key count how often they came, also over a second
    start."""
    running = world.start(spark)
    running.until(lambda: world.is_replicating() and world.is_level(), SPARK_SECONDS)
    change_all(world.database, 1)
    running.until(world.is_level, SPARK_SECONDS)
    running.stop()
    change_all(world.database, 2)
    running = world.start(spark)
    running.until(world.is_level, SPARK_SECONDS)
    running.stop()
    assert world.copied(VIEWS)
    assert {r.generation for r in world.store.tables()} == {1}
