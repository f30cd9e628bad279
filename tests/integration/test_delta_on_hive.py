"""Delta tables that a Hive metastore lists by name: the rows of the source, over a kill, read by
name through a Spark that knows nothing of the product, and by path by deltalake. The metastore is
Hive 2.3.10, whose jars PySpark brings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.hive import HiveCatalog

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import parse
from replicators.targets.lakehouse import held
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.params import LakehouseParams
from tests.harness import NAMESPACE, Traffic
from tests.hive_metastore import HiveMetastore
from tests.lake_sql import lake_rows, lake_sql
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(1800)]
TABLE = TableSchema(TableId("shop", "items"), (Column("id", Int(64), "bigint"),), ("id",))
ITEMS, PAIRS, VIEW = (f"spark_catalog.{NAMESPACE}.{n}" for n in ("items", "pairs", "pairs_current"))


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    with HiveMetastore() as made:
        yield made


def test_a_hive_metastore_lists_delta_tables_over_a_kill(
    world_maker: MakeWorld, metastore: HiveMetastore
) -> None:
    """Guards the names: a first copy, a SIGKILL while batches are merged, a new column and a new
    comment, a view of the living rows, a fresh copy, and the end of a table with its data."""
    target = {"delta_catalog": "hive", "catalog_uri": metastore.uri, "current_views": True}
    catalog = HiveCatalog("reader", uri=metastore.uri)

    def has(name: str) -> bool:
        return held.entry(catalog, (NAMESPACE, name)) is not None

    with world_maker(
        format="delta",
        tables=("items", "pairs"),
        modes={"pairs": "soft_delete"},
        target=target,
    ) as world:
        source = world.database
        params = world.target_params()[1]
        given: LakehouseParams = parse(LakehouseParams, params)
        with LakehouseChecks(given) as checks:
            assert [p.code for p in checks.connection() + checks.tables([TABLE], "")] == []
        source.execute("COMMENT ON TABLE shop.items IS 'what is sold'")
        traffic = Traffic(source)
        world.start()
        world.until_states("replicating")
        with traffic.going_on():
            world.moves_on("items")
            world.kill()
        source.execute("ALTER TABLE shop.items ADD COLUMN extra int DEFAULT 7")
        source.execute("COMMENT ON COLUMN shop.items.extra IS 'one more'")
        source.execute("DELETE FROM shop.pairs WHERE part = 3")
        traffic.write(10)
        world.start()
        world.assert_equal("items")
        world.settle("pairs")

        def read() -> list[list[dict[str, Any]]]:
            queries = (
                "SET spark.databricks.delta.snapshotPartitions=2",
                f"SELECT id, extra, note FROM {ITEMS} ORDER BY id",
                f"SELECT * FROM {VIEW} ORDER BY word, part",
                f"DESCRIBE EXTENDED {ITEMS}",
            )
            return lake_rows(params, *queries)[1:]

        def wanted(query: str, *names: str) -> list[dict[str, Any]]:
            return [dict(zip(names, row, strict=True)) for row in source.execute(query)]

        def assert_read() -> list[dict[str, Any]]:
            items, pairs, told = read()
            names = ("id", "extra", "note")
            assert items == wanted("SELECT id, extra, note FROM shop.items ORDER BY 1", *names)
            assert len(pairs) == source.execute("SELECT count(*) FROM shop.pairs")[0][0]
            assert set(pairs[0]) == {c for c in pairs[0] if not c.startswith("_")}
            return told

        told = {(row["col_name"], row["data_type"], row["comment"]) for row in assert_read()}
        assert ("extra", "int", "one more") in told
        assert ("Comment", "what is sold", "") in told
        world.resync("items")
        world.resync("pairs")
        traffic.write(5)
        world.assert_equal("items")
        world.settle("pairs")
        assert_read()
        assert has("pairs")
        assert has("pairs_current")
        world.remove("pairs", keep_target=False)
        folder = Path(params["warehouse"], NAMESPACE, "pairs")
        world.until(lambda: not (has("pairs") or has("pairs_current")), "the names are gone")
        world.until(lambda: not folder.exists(), "the files are gone")
        assert has("items")
        assert world.stop() == 0


def test_a_name_that_the_metastore_gives_to_another_table_is_taken(
    metastore: HiveMetastore, tmp_path: Path
) -> None:
    """Guards everybody's tables: the assessment names what is taken, and what is wrong with the
    metastore's address or a name."""
    values = {"format": "delta", "delta_catalog": "hive", "catalog_uri": metastore.uri}
    values["namespace"] = "apart"
    params: LakehouseParams = parse(LakehouseParams, {**values, "warehouse": str(tmp_path / "a")})

    def told(**fields: Any) -> list[str]:
        with LakehouseChecks(replace(params, **fields)) as checks:
            return [p.code for p in checks.connection() or checks.tables([TABLE], "")]

    assert told() == []
    place = tmp_path / "b"
    lake_sql(
        {**values, "warehouse": str(tmp_path / "a")},
        f"CREATE DATABASE IF NOT EXISTS apart LOCATION '{tmp_path}/apart.db'",
        f"CREATE TABLE apart.items (id bigint) USING delta LOCATION '{place}'",
    )
    assert told() == ["target:table-taken"]
    assert told(namespace="another") == []
    assert told(namespace="another", name_case="upper") == ["target:catalog-name"]
    assert told(catalog_uri="thrift://127.0.0.1:9") == ["target:catalog-unreachable"]
