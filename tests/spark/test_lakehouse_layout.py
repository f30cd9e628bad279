"""What readers see of a copy beside its rows: comments, properties, names by rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.target import TargetTable
from replicators.targets.lakehouse import naming
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.spark.lakehouses import PLAIN, Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = [pytest.mark.spark, pytest.mark.long]
QUOTED = "says \"yes\", 'no' and \\ {schema} `x`"


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


def with_params(house: Lakehouse, **values: Any) -> Lakehouse:
    """The same lakehouse under other params."""
    params: LakehouseParams = replace(house.params, **values)
    return Lakehouse(params, LakehouseWriter(params, house.writer.spark), house.folder)


def commented(schema: TableSchema, about: str, **columns: str) -> TableSchema:
    """The schema with comments."""
    made = tuple(replace(c, comment=columns.get(c.name, c.comment)) for c in schema.columns)
    return replace(schema, columns=made, comment=about)


def comments_of(house: Lakehouse, schema: TableSchema) -> tuple[str, dict[str, str]]:
    """The comments as the format's own reader sees them."""
    names = naming.names(house.params, schema.id)
    if house.form == "iceberg":
        table = house.catalog().load_table(names)
        found = {f.name: f.doc or "" for f in table.schema().fields}
        return table.properties.get("comment", ""), found
    from deltalake import DeltaTable

    delta = DeltaTable(house.writer.format.folder(names))
    found = {f.name: f.metadata.get("comment", "") for f in delta.schema().fields}
    return delta.metadata().description or "", found


def test_comments_come_with_a_copy_and_with_changes_of_its_columns(house: Lakehouse) -> None:
    """Also with a fresh copy of a table that is live, and with quotes in them."""
    schema = commented(table_schema("told", PLAIN), QUOTED, id="the number", note=QUOTED)
    table = house.copied(schema, [(1, "a", "x")])
    assert comments_of(house, schema) == (QUOTED, {"id": "the number", "name": "", "note": QUOTED})
    wider = table_schema("told", {**PLAIN, "more": Int(32)})
    wider = commented(wider, "another", id="a key", more="came later")
    house.writer.evolve(table, schema, wider)
    told = {"id": "a key", "name": "", "note": QUOTED, "more": "came later"}
    assert comments_of(house, schema) == ("another", told)
    house.writer.merge(table, house.batch(wider, 5, [(2, "b", "y", 3)]))
    again = commented(wider, "a third", name="who")
    house.copied(again, [(1, "a", "x", 2)], sequence=9, generation=2)
    kept = QUOTED if house.form == "iceberg" else ""  # Delta replaces the table
    assert comments_of(house, schema) == ("a third", told | {"name": "who", "note": kept})
    assert house.writer.token(TargetTable(schema.id, "r1", 2)).sequence == 9  # type: ignore[union-attr]
    assert house.read(again) == [(1, "a", "x", 2)]


def test_a_table_is_rewound_past_another_comment(house: Lakehouse) -> None:
    """Another comment makes no other columns."""
    schema = commented(table_schema("rewound", PLAIN), "one", id="one")
    table = house.copied(schema, [(1, "a", "x")])
    house.writer.merge(table, house.batch(schema, 5, [(2, "b", "y")]))
    house.writer.evolve(table, schema, commented(schema, "two", id="two"))
    house.writer.merge(table, house.batch(schema, 9, [(3, "c", "z")]))
    kept = house.writer.version_at(table, 5)
    assert kept is not None and kept.sequence == 5
    again = replace(table, generation=2)
    house.writer.begin_rewind(again, kept.version)
    house.writer.publish_snapshot(again, schema, 20)
    assert house.read(schema) == [(1, "a", "x"), (2, "b", "y")]


def test_comments_stay_away_where_they_are_not_asked_for(house: Lakehouse) -> None:
    """A reader's own comments then stay as they are."""
    plain = with_params(house, comments=False)
    schema = commented(table_schema("silent", PLAIN), "secret", id="secret")
    plain.copied(schema, [(1, "a", "x")])
    assert comments_of(plain, schema) == ("", {"id": "", "name": "", "note": ""})


def test_chosen_properties_come_with_the_next_copy(house: Lakehouse) -> None:
    """Also of a table that is live; the program's own stay."""
    schema = table_schema("chosen", PLAIN)
    table = house.copied(schema, [(1, "a", "x")])
    other = with_params(house, table_properties="owner.team = sales; a=b=c")
    other.copied(schema, [(2, "b", "y")], sequence=5, generation=2)
    names = naming.names(house.params, schema.id)
    if house.form == "iceberg":
        found = other.catalog().load_table(names).properties
        assert found["write.merge.mode"] == "merge-on-read"
    else:
        from deltalake import DeltaTable

        found = DeltaTable(other.writer.format.folder(names)).metadata().configuration
        assert found["delta.columnMapping.mode"] == "name"
    assert (found["owner.team"], found["a"]) == ("sales", "b=c")
    assert other.read(schema) == [(2, "b", "y")]
    assert other.writer.token(replace(table, generation=2)).sequence == 5  # type: ignore[union-attr]


def test_names_follow_their_rule(house: Lakehouse, tmp_path: Path) -> None:
    """A copy, a merge and maintenance under a name by rule."""
    ruled = with_params(
        house, namespace="raw_{schema}", table_prefix="{schema}_", name_case="upper",
        schema_namespaces="shop=sales",
    )  # fmt: skip
    schema = table_schema("Ruled", PLAIN)
    table = ruled.copied(schema, [(1, "a", "x")])
    ruled.writer.merge(table, ruled.batch(schema, 5, [(2, "b", "y")]))
    ruled.writer.maintain(table)
    assert ruled.read(schema) == [(1, "a", "x"), (2, "b", "y")]
    assert naming.names(ruled.params, schema.id) == ("RAW_SALES", "SHOP_RULED")
    if house.form == "iceberg":
        assert ("RAW_SALES", "SHOP_RULED") in ruled.catalog().list_tables("RAW_SALES")
