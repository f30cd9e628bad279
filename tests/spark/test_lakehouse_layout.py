"""What readers see of a copy beside its rows: comments, properties, names by rule,
partitions, order, branches and tags."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Int, String, Timestamp
from replicators.connectors.target import TargetTable
from replicators.targets.lakehouse import naming
from replicators.targets.lakehouse.delta import Delta
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


def folder_of(house: Lakehouse, schema: TableSchema) -> str:
    """The folder of a Delta table."""
    return Delta(house.params).folder(naming.names(house.params, schema.id))


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

    delta = DeltaTable(folder_of(house, schema))
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

        found = DeltaTable(folder_of(other, schema)).metadata().configuration
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


def files_of(house: Lakehouse, schema: TableSchema, where: str = "true") -> set[Path]:
    """The data files of the live table that have such rows."""
    names = naming.names(house.params, schema.id)
    place = "_file" if house.form == "iceberg" else "_metadata.file_path"
    frame: Any = house.writer.spark.table(house.writer.format.path(names))
    rows = frame.where(where).selectExpr(f"{place} AS file").distinct().collect()
    return {Path(unquote(row["file"].removeprefix("file:"))) for row in rows}


DIVIDED = [
    ("day(at)", "date(at) = DATE '2026-01-04'"),
    ("bucket(4, id)", "id = 350"),
    ("country", "country = ''"),
    ("part", "part = 3"),
]


@pytest.mark.parametrize(("rule", "same"), DIVIDED)
def test_a_merge_opens_only_the_partitions_of_its_keys(
    house: Lakehouse, rule: str, same: str
) -> None:
    """All files of other partitions are away while the merge runs."""
    if house.form == "delta" and rule != "part":
        pytest.skip("Delta takes columns of a few types only")
    name = f"divided_by_{rule.partition('(')[0]}"
    house = with_params(house, partition_by=f"{name}: {rule}")
    columns = {**PLAIN, "at": Timestamp(zone=True), "country": String(), "part": Int(32)}
    schema = table_schema(name, columns)

    def row(n: int, text: str = "a") -> tuple[Any, ...]:
        part = n // 100
        at = datetime(2026, 1, 1 + part, n % 24, tzinfo=UTC)
        return n, text, "x", at, "" if part == 3 else f"c{part}", part

    table = house.copied(schema, [row(n) for n in range(600)])
    spared, every = files_of(house, schema, same), files_of(house, schema)
    assert len(spared) == 1 and len(every) == (4 if "bucket" in rule else 6)
    for path in every - spared:
        path.rename(f"{path}.away")
    try:
        batch = house.batch(schema, 5, [row(350, "b")], keys=(350,))
        assert house.writer.merge(table, batch).was_applied
    finally:
        for path in every - spared:
            Path(f"{path}.away").rename(path)
    assert house.read(schema) == [row(n, "b" if n == 350 else "a") for n in range(600)]
    house.writer.merge(table, house.batch(schema, 6, [row(351, "c"), row(20, "c")], deleted=[1]))
    house.writer.maintain(table)
    expected = {n: row(n, {350: "b", 351: "c"}.get(n, "a")) for n in range(600) if n != 20}
    assert house.read(schema) == list(expected.values())


def test_a_divided_table_keeps_its_column_and_gets_another_layout_with_a_fresh_copy(
    house: Lakehouse,
) -> None:
    """The source drops the column; then the rule changes. Readers open every version."""
    divided = with_params(house, partition_by="*: one")
    columns = {"id": Int(64), "one": Int(32), "two": Int(32)}
    schema = table_schema("relaid", columns)
    table = divided.copied(schema, [(n, n % 3, 7) for n in range(30)])
    assert names_of_partition(divided, schema) == ["one"]
    narrow = replace(schema, columns=(schema.columns[0], schema.columns[2]))
    divided.writer.evolve(table, schema, narrow)
    divided.writer.merge(table, divided.batch(narrow, 5, [(1, 8)]))
    found = {r["id"]: (r["one"], r["two"]) for r in divided.records(schema)}
    assert (found[1], found[2]) == ((1, 8), (2, 7))
    other = with_params(house, partition_by="relaid: two")
    again = other.copied(narrow, [(n, n % 2) for n in range(10)], sequence=9, generation=2)
    assert names_of_partition(other, narrow) == ["two"]
    other.writer.merge(again, other.batch(narrow, 12, [(3, 0)]))
    other.writer.maintain(again)
    rows = {(r["id"], r["two"]) for r in other.records(narrow)}
    assert rows == {(n, 0 if n == 3 else n % 2) for n in range(10)}
    moved = replace(narrow, columns=(narrow.columns[0], replace(narrow.columns[1], name="three")))
    other.writer.evolve(again, narrow, moved)
    plain = house.copied(moved, [(1, 5)], sequence=20, generation=3)
    assert names_of_partition(house, narrow) == []
    house.writer.merge(plain, house.batch(moved, 25, [(2, 6)]))
    assert {(r["id"], r["three"]) for r in house.records(moved)} == {(1, 5), (2, 6)}


def names_of_partition(house: Lakehouse, schema: TableSchema) -> list[str]:
    """The columns of the live table's present partition."""
    names = naming.names(house.params, schema.id)
    if house.form == "iceberg":
        return [f.name for f in house.catalog().load_table(names).spec().fields]
    from deltalake import DeltaTable

    return list(DeltaTable(folder_of(house, schema)).metadata().partition_columns)


def test_files_are_sorted_as_chosen(house: Lakehouse) -> None:
    """Those of the copy, and those that maintenance makes."""
    if house.form == "delta":
        pytest.skip("only Iceberg has an order")
    house = with_params(house, sort_by="sorted: name desc, id")
    schema = table_schema("sorted", PLAIN)
    table = house.copied(schema, [(n, f"n{n % 7}", "x") for n in range(50)])

    def stored() -> list[tuple[Any, ...]]:
        frame = house.writer.spark.table(
            house.writer.format.path(naming.names(house.params, schema.id))
        )
        rows = frame.selectExpr("_file", "_pos", "name", "id").collect()
        files = {r["_file"] for r in rows}
        assert len(files) == 1
        return [(r["name"], r["id"]) for r in sorted(rows, key=lambda r: r["_pos"])]

    def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted(sorted(rows, key=lambda r: r[1]), key=lambda r: r[0], reverse=True)

    assert stored() == in_order(stored())
    for turn in range(6):
        house.writer.merge(table, house.batch(schema, 10 + turn, [(turn, f"n{turn}9", None)]))
    house.writer.maintain(table)
    assert stored() == in_order(stored()) and len(stored()) == 50
    order = house.catalog().load_table(naming.names(house.params, schema.id)).sort_order()
    assert [str(f.direction) for f in order.fields] == ["DESC", "ASC"]


def test_branches_and_tags_of_a_user_survive(house: Lakehouse) -> None:
    """Merges, expiry of snapshots and a fresh copy leave them, with their rows."""
    if house.form == "delta":
        pytest.skip("Delta has neither")
    house = with_params(house, history_minutes=0)
    schema = table_schema("tagged", PLAIN)
    table = house.copied(schema, [(n, "a", "x") for n in range(10)])
    path = house.writer.format.path(naming.names(house.params, schema.id))
    spark = house.writer.spark
    spark.sql(f"ALTER TABLE {path} CREATE TAG month_end")
    spark.sql(f"ALTER TABLE {path} CREATE BRANCH audit")
    for turn in range(6):
        house.writer.merge(table, house.batch(schema, 10 + turn, [(turn, "b", None)]))
    with_params(house).writer.maintain(table)
    again = house.copied(schema, [(1, "c", "x")], sequence=30, generation=2)
    house.writer.merge(again, house.batch(schema, 40, [(2, "d", "y")]))
    for _ in range(2):
        with_params(house).writer.maintain(again)
    kept = house.catalog().load_table(naming.names(house.params, schema.id))
    for name in ("month_end", "audit"):
        found = kept.scan(snapshot_id=kept.metadata.refs[name].snapshot_id).to_arrow()
        assert sorted(found.column("name").to_pylist()) == ["a"] * 10
    assert len(kept.metadata.snapshots) < 6
    assert house.read(schema) == [(1, "c", "x"), (2, "d", "y")]
