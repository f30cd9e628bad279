"""Views of the living rows in a lakehouse: their names, who may have them, and what lies at their
place. No Spark."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from sqlalchemy import text

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.params import InvalidParams
from replicators.connectors.view_fields import ViewChecks
from replicators.targets.lakehouse import held, naming
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.held import OF
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.state import OWNER

PARAMS = LakehouseParams(
    warehouse="/lake", catalog_uri="sqlite:////lake/catalog.db", current_views=True
)
HIVE = replace(PARAMS, catalog="hive", catalog_uri="thrift://hive.example:9083")
ORDERS = TableSchema(TableId("shop", "orders"), (Column("id", Int(64), "bigint"),), ("id",))


@pytest.mark.parametrize(
    ("params", "name"),
    [
        (PARAMS, "Orders_current"),
        (replace(PARAMS, view_suffix="_Now"), "Orders_Now"),
        (replace(PARAMS, view_suffix="_Now", name_case="upper"), "ORDERS_NOW"),
        (replace(HIVE, view_suffix="_Now"), "Orders_now"),
    ],
)
def test_a_view_is_named_after_its_table(params: LakehouseParams, name: str) -> None:
    """By the chosen end and the case of names. Hive writes it in lower case."""
    assert naming.view(params, ("shop", "Orders")) == ("shop", name)


def test_a_long_name_is_shortened_and_an_option_that_is_off_has_no_view() -> None:
    """Guards the length of names in Hive."""
    made = naming.view(PARAMS, ("shop", "x" * 255))
    assert made == ("shop", "x" * 247 + "_current")
    assert naming.view(replace(PARAMS, current_views=False), ("shop", "orders")) is None


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"format": "delta"}, "choose hive in Catalog of Delta"),
        ({"catalog": "glue", "catalog_uri": "", "warehouse": "s3://lake/x"}, "Glue"),
    ],
)
def test_the_form_says_where_no_view_can_be(values: dict[str, Any], why: str) -> None:
    """Guards people against an option that would do nothing."""
    with pytest.raises(InvalidParams) as info:
        replace(PARAMS, **values)
    assert list(info.value.errors) == ["current_views"]
    assert why in info.value.errors["current_views"]
    assert not replace(PARAMS, current_views=False, **values).has_views


@pytest.fixture
def params(tmp_path: Path) -> LakehouseParams:
    return replace(PARAMS, warehouse=str(tmp_path), catalog_uri=f"sqlite:///{tmp_path}/catalog.db")


@pytest.fixture
def catalog(params: LakehouseParams) -> Iterator[SqlCatalog]:
    """The catalog's database, as Iceberg makes it."""
    made = SqlCatalog("lakehouse", uri=params.catalog_uri, warehouse=params.warehouse)
    made.create_namespace("shop")
    yield made
    made.close()


def add_view(catalog: SqlCatalog, folder: str, name: str, **values: str) -> None:
    """A view as Spark's Iceberg writes it: its row, and its packed metadata file."""
    place = Path(folder) / f"{name}.gz.metadata.json"
    place.write_bytes(gzip.compress(json.dumps({"properties": values}).encode()))
    row = {"n": name, "m": str(place)}
    with catalog.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                " metadata_location, iceberg_type) VALUES ('lakehouse', 'shop', :n, :m, 'VIEW')"
            ),
            row,
        )


def test_what_lies_at_a_place_is_told_apart(params: LakehouseParams, catalog: SqlCatalog) -> None:
    """Guards everybody's tables and views: pyiceberg itself sees no view in a database."""
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    catalog.create_table("shop.orders", schema, properties={OWNER: "r1", OF: "orders"})
    add_view(catalog, params.warehouse, "orders_current", **{OWNER: "r1", OF: "orders"})
    with held.opened(params, None) as reader:
        assert held.view(reader, params, ("shop", "nothing")) is None
        assert held.view(reader, params, ("shop", "orders")) == {}
        mine = {OWNER: "r1", OF: "orders"}
        assert held.view(reader, params, ("shop", "orders_current")) == mine


def asked(params: LakehouseParams, *chosen: str, viewed: int = 1, by: str = "r1") -> list[str]:
    """The tables whose view is taken, as the assessment says."""
    tables = [replace(ORDERS, id=TableId("shop", name)) for name in chosen]
    with LakehouseChecks(params) as checks:
        assert isinstance(checks, ViewChecks)
        found = checks.views(tables[:viewed], tables, by)
    assert all(p.code == "target:view-taken" for p in found)
    return [p.table.name for p in found if p.table is not None]


def test_the_assessment_tells_views_whose_names_are_taken(
    params: LakehouseParams, catalog: SqlCatalog
) -> None:
    """By another table, by another view, by the progress table, and by what is in the catalog."""
    assert asked(params, "orders") == []
    assert asked(params, "orders", "Orders_Current") == ["orders"]
    long = "x" * 255
    assert asked(params, long + "a", long + "b", viewed=2) == [long + "b"]
    progress = replace(params, namespace="shop", view_suffix="_progress")
    assert asked(progress, "replicator") == ["replicator"]
    add_view(catalog, params.warehouse, "orders_current", **{OWNER: "r1", OF: "orders"})
    add_view(catalog, params.warehouse, "items_current", by="hand")
    assert asked(params, "orders") == []
    assert asked(params, "orders", by="") == asked(params, "orders", by="r2") == ["orders"]
    assert asked(params, "items") == ["items"]
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    catalog.create_table("shop.people_current", schema)
    assert asked(params, "people") == ["people"]
    assert asked(replace(params, current_views=False), "people", "items", viewed=2) == []


def test_a_catalog_that_is_not_there_yet_has_nothing_in_it(params: LakehouseParams) -> None:
    """Guards the first assessment: it makes no database."""
    assert asked(params, "orders") == []
    assert list(Path(params.warehouse).iterdir()) == []
