"""The lakehouse's preflight: it needs no Spark, only catalog and storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import InvalidParams, parse
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.conf import jdbc_url, spark_conf
from replicators.targets.lakehouse.params import LakehouseParams
from tests.spark.lakehouses import PLAIN, table_schema
from tests.spark_fixtures import lakehouse_params


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_a_new_place_has_no_problems(tmp_path: Path, form: str) -> None:
    """Guards `LakehouseChecks` against false alarms: a warehouse and a catalog that are not there
    yet are made by the first run."""
    with LakehouseChecks(lakehouse_params(tmp_path, form)) as checks:
        assert checks.connection() == []
        assert checks.tables([table_schema("orders", PLAIN)], "r1") == []


def test_a_warehouse_below_a_file_is_named_and_missing_folders_are_reported(tmp_path: Path) -> None:
    """Guards `LakehouseChecks.connection`: without the probes both would be found out by the first
    copy, hours later."""
    (tmp_path / "file").write_text("x")
    params = LakehouseParams(
        warehouse=str(tmp_path / "file" / "w"), catalog_uri=f"sqlite:///{tmp_path}/none/c.db"
    )
    found = [(p.code, p.severity) for p in LakehouseChecks(params).connection()]
    assert found == [("target:place-unusable", "ERROR")]
    (tmp_path / "file").unlink()
    found = [(p.code, p.severity) for p in LakehouseChecks(params).connection()]
    assert found == [("target:folder-made", "INFO")]
    assert list(tmp_path.iterdir()) == [], "a look makes nothing"


def test_two_tables_of_one_name_and_a_foreign_table_are_named(tmp_path: Path) -> None:
    """Guards `_shared` and `_owners`: two tables would be written into one, or somebody's data be
    replaced."""
    params = lakehouse_params(tmp_path, "delta", namespace="all")
    (tmp_path / "delta" / "all" / "taken").mkdir(parents=True)
    first, taken = table_schema("Orders", PLAIN), table_schema("taken", PLAIN)
    second = TableSchema(TableId("other", "orders"), first.columns, first.key)
    codes = [p.code for p in LakehouseChecks(params).tables([first, second, taken], "r1")]
    assert codes == ["target:name-shared", "target:table-taken"]


def test_columns_that_differ_in_case_only_do_not_fit_delta(tmp_path: Path) -> None:
    """Guards `checks._cases`: Delta takes both names for one column, and the table's creation would
    fail."""
    table = table_schema("cased", {"id": Int(64), "ID": Int(64)})
    assert [
        p.code for p in LakehouseChecks(lakehouse_params(tmp_path, "delta")).tables([table], "r")
    ] == ["target:column-case"]


def test_a_column_with_one_of_icebergs_names_is_refused_before_it_breaks_every_merge(
    tmp_path: Path,
) -> None:
    """Guards the list of names that Iceberg keeps for itself; Delta takes them."""
    table = table_schema("odd", {"id": Int(64), "_Deleted": Int(64)})
    iceberg = LakehouseChecks(lakehouse_params(tmp_path, "iceberg")).tables([table], "r")
    assert [(p.code, p.column) for p in iceberg] == [("target:column-reserved", "_Deleted")]
    assert LakehouseChecks(lakehouse_params(tmp_path, "delta")).tables([table], "r") == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"warehouse": "/w", "catalog_uri": "postgresql://u:secret@h/d"}, "catalog_uri"),
        ({"warehouse": "/w", "catalog_uri": "sqlite:///relative.db"}, "catalog_uri"),
        ({"warehouse": "/w", "catalog_uri": "mysql://h/d"}, "catalog_uri"),
        ({"warehouse": "/w"}, "catalog_uri"),
        ({"warehouse": "/w", "format": "delta", "catalog_name": "a b"}, "catalog_name"),
        ({"format": "delta"}, "warehouse"),
    ],
)
def test_params_that_cannot_work_are_refused_by_name(values: dict[str, str], field: str) -> None:
    """Guards `LakehouseParams` and `_uri_errors`: above all a password in the catalog's address,
    which would be stored and shown in clear."""
    with pytest.raises(InvalidParams) as caught:
        parse(LakehouseParams, values)
    assert list(caught.value.errors) == [field]


def test_the_catalogs_password_is_not_in_sparks_conf() -> None:
    """Guards `conf.spark_conf` and `jdbc_url`: Spark writes its settings to its log and shows them
    on its page."""
    params = LakehouseParams(
        warehouse="/w",
        catalog_uri="postgresql+psycopg://db:5433/cat",
        catalog_user="u",
        catalog_password="hidden",
    )
    assert jdbc_url(params.catalog_uri) == "jdbc:postgresql://db:5433/cat"
    assert "hidden" not in repr(params) + str(spark_conf(params))
