"""Tables of the lakehouse are read by DuckDB: rows, deleted rows, changed columns."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.types import Date, Decimal, Int, LogicalType, String, Timestamp
from replicators.targets.lakehouse import naming
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.duckdb_reader import duckdb_rows
from tests.spark.lakehouses import Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.spark, pytest.mark.long]
COLUMNS: dict[str, LogicalType] = {
    "id": Int(64),
    "name": String(),
    "total": Decimal(12, 2),
    "day": Date(),
    "at": Timestamp(6, zone=True),
}


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


def read(house: Lakehouse, name: str) -> list[dict[str, Any]]:
    """The table's rows in DuckDB, in order."""
    names = naming.names(house.params, table_schema(name, COLUMNS).id)
    if house.form == "iceberg":
        place = house.catalog().load_table(names).metadata_location
    else:
        place = house.writer.format.folder(names)
    return sorted(duckdb_rows(house.form, place), key=lambda row: row["id"])


def test_duckdb_reads_what_merges_left(house: Lakehouse) -> None:
    """Guards deletion vectors, Iceberg's format v3 and Delta's mapped columns for a reader of
    another make: a copy, a merge that changes and deletes rows, a renamed and a new column, upkeep.
    The same rows are those of the formats' own readers."""
    name = f"duck_{house.form}"
    schema = table_schema(name, COLUMNS)
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
    more = (Number("1.50"), dt.date(2026, 1, 2), at)
    table = house.copied(schema, [(n, f"n{n}", *more) for n in range(1, 50)])
    changed = [(2, "two", *more), (3, "", *more), (60, "new", *more)]
    house.writer.merge(table, house.batch(schema, 5, changed, deleted=[1]))
    columns = tuple(replace(c, name="title") if c.name == "name" else c for c in schema.columns)
    wider = table_schema(name, {**COLUMNS, "extra": Int(32)})
    wider = replace(wider, columns=(*columns, wider.columns[-1]))
    house.writer.evolve(table, schema, wider)
    last = (4, "four", *more, 7)
    house.writer.merge(table, house.batch(wider, 9, [last]))
    expected = [tuple(row.values()) for row in house.records(wider)]
    wanted = {row[0]: row for row in expected}
    assert 3 not in wanted
    for _ in range(2):
        found = read(house, name)
        assert [row["id"] for row in found] == sorted(wanted)
        titles = {row["id"]: (row["title"], row["extra"]) for row in found}
        assert titles[2] == ("two", None)
        assert titles[4] == ("four", 7)
        assert titles[60] == ("new", None)
        first = next(row for row in found if row["id"] == 1)
        assert (first["total"], first["day"]) == ("1.50", "2026-01-02")
        assert dt.datetime.fromisoformat(first["at"]) == at
        house.writer.maintain(table)
