"""Older versions of lakehouse tables: found, staged, brought level and published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import String
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import delta, vacuum
from replicators.targets.lakehouse.versions import read_marks
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.spark.lakehouses import DELTA_LONG, PLAIN, Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


@pytest.mark.long_with("file")
@pytest.mark.parametrize("reader", [True, False], ids=["file", "queries"])
@pytest.mark.long
def test_a_version_older_than_the_history_stays_for_rewinds(
    spark: Any,
    lakehouse_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: bool,
) -> None:
    """Guards the tags (docs/decisions/0022): without them an expiry leaves the present version
    alone. Its rows are staged again; switched off, it goes. Read from the metadata file and, as in
    a store elsewhere, by Spark's queries."""
    params = lakehouse_params(lakehouse_root, "iceberg", history_minutes=0)
    house = Lakehouse(params, LakehouseWriter(params, spark), tmp_path)
    if not reader:
        monkeypatch.setattr(house.writer.format, "open_reader", lambda: None)
    schema = table_schema(f"spread_{reader}", PLAIN)
    table = house.copied(schema, [(1, "a", "x")], sequence=10)
    first = house.read(schema)
    batches = [house.batch(schema, at, [(1, f"b{at}", "y")]) for at in (20, 30, 40)]
    for batch in batches:
        house.writer.merge(table, batch)
    live = house.read(schema)
    house.writer.maintain(table, 3600.0)
    kept = {at: house.writer.version_at(table, at) for at in (5, 35, 40)}
    assert {at: v.sequence for at, v in kept.items() if v} == {5: 10, 35: 10, 40: 40}

    old = kept[35]
    assert old is not None
    copy = replace(table, generation=2)
    house.writer.begin_rewind(copy, old.version)
    assert spark.table(house.writer.format.staging_path(spark, copy)).count() == len(first)
    for batch in batches:
        house.writer.merge_staged(copy, batch)
    house.writer.publish_snapshot(copy, schema, 40)
    assert house.read(schema) == live
    LakehouseWriter(params, spark).maintain(copy, 3600.0)
    gone = house.writer.version_at(replace(table, generation=1), 10)
    assert gone is None, "a version of a generation that was replaced was kept"
    place = house.writer.format.path(("shop", f"spread_{reader}"))
    tags = [n for (n,) in spark.sql(f"SELECT name FROM {place}.refs").collect() if n != "main"]
    assert len(tags) == 1 and old.version not in tags[0]
    LakehouseWriter(params, spark).maintain(copy)
    assert [n for (n,) in spark.sql(f"SELECT name FROM {place}.refs").collect()] == ["main"]


@pytest.mark.long
def test_a_delta_version_older_than_the_history_stays_for_rewinds(
    spark: Any, lakehouse_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards what VACUUM spares (docs/decisions/0022): without it the files of the marked version
    go with all the others, and its rows can't be staged. It reads a file with a deletion vector.
    Replaced, or switched off, it goes."""
    monkeypatch.setattr(delta, "_LEAST_HOURS", 0.0)
    params = lakehouse_params(lakehouse_root, "delta", history_minutes=0)
    house = Lakehouse(params, LakehouseWriter(params, spark), tmp_path)
    schema = table_schema("spared", PLAIN)
    table = house.copied(schema, [(n, "a", "x") for n in range(50)], sequence=10)
    house.writer.merge(table, house.batch(schema, 20, [(1, "b", "y")], deleted=[0]))
    house.writer.maintain(table, 3600.0)
    form = house.writer.format
    names = ("shop", "spared")
    kept = _marks(form, names)
    assert [m.sequence for m in kept] == [20]
    files = vacuum.files_of(spark, form.folder(names), int(kept[0].version))
    assert any(f.endswith(".bin") for f in files), "no deletion vector is tried"
    then = house.read(schema)

    batch = house.batch(schema, 30, [(n, "c", "y") for n in range(40)])
    house.writer.merge(table, batch)
    live = house.read(schema)
    before = _files(form, names)
    LakehouseWriter(params, spark).maintain(table, 3600.0)
    after = _files(form, names)
    assert files <= after, "what was spared went"
    assert before - after, "nothing went"
    found = {at: house.writer.version_at(table, at) for at in (5, 25, 30)}
    assert {at: v.sequence for at, v in found.items() if v} == {5: 20, 25: 20, 30: 30}
    assert found[25] == kept[0]

    copy = replace(table, generation=2)
    house.writer.begin_rewind(copy, kept[0].version)
    staged = spark.table(form.staging_path(spark, copy)).toArrow().to_pylist()
    assert sorted(tuple(r.values()) for r in staged) == then
    house.writer.merge_staged(copy, batch)
    house.writer.publish_snapshot(copy, schema, 30)
    assert house.read(schema) == live
    assert _marks(form, names) == (), "a version of a generation that was replaced is kept"
    LakehouseWriter(params, spark).maintain(copy, 3600.0)
    assert not files & _files(form, names), "files that nobody needs stay"
    assert [m.sequence for m in _marks(form, names)] == [30]
    LakehouseWriter(params, spark).maintain(copy)
    assert _marks(form, names) == ()
    assert house.read(schema) == live


def _marks(form: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    return read_marks(form._open(names).metadata().configuration.get(delta.MARKS, ""))


def _files(form: Any, names: tuple[str, ...]) -> set[str]:
    """The paths, within the table, of its data files and deletion vectors."""
    root = Path(form.folder(names))
    found = (p.relative_to(root) for p in root.rglob("*") if p.suffix in {".parquet", ".bin"})
    return {str(p) for p in found if p.parts[0] != "_delta_log"}


@DELTA_LONG
def test_an_older_version_is_brought_level_beside_the_live_rows_and_published_in_one_step(
    house: Lakehouse,
) -> None:
    """Guards CORRECTNESS 15 at the target: the right version is found by its token, the live rows
    stay as they are while the copy is written, and columns that were others then are refused."""
    schema = table_schema("rewound", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y")], sequence=10)
    later = [(20, (1, "c", "x")), (30, (3, "d", "z")), (40, (2, "e", "y"))]
    batches = [house.batch(schema, sequence, [row]) for sequence, row in later]
    for batch in batches:
        house.writer.merge(table, batch)
    house.writer.maintain(table)
    live = house.read(schema)

    kept = {at: house.writer.version_at(table, at) for at in (5, 10, 29, 30, 99)}
    assert {at: v.sequence for at, v in kept.items() if v} == {
        5: 10,
        10: 10,
        29: 20,
        30: 30,
        99: 40,
    }
    old = kept[29]
    assert old is not None and old.committed_at > 0

    copy = replace(table, generation=2)
    house.writer.begin_rewind(copy, old.version)
    for batch in batches[1:]:
        house.writer.merge_staged(copy, batch)
        assert house.read(schema) == live
    house.writer.publish_snapshot(copy, schema, 40)
    assert house.read(schema) == live
    token = house.writer.token(copy)
    assert token is not None and (token.generation, token.sequence) == (2, 40)
    assert house.writer.merge(copy, house.batch(schema, 50, [(4, "f", "w")])).was_applied
    again = house.writer.version_at(copy, 5)
    assert again is not None and again.sequence > 5, "a version of another generation was found"

    wider = replace(schema, columns=(*schema.columns, Column("more", String(), "text", ordinal=9)))
    old_again = house.writer.version_at(copy, 50)
    house.writer.evolve(copy, schema, wider)
    rows = [(4, "f", "w", "new")]
    house.writer.merge(copy, house.batch(wider, 60, rows))
    assert old_again is not None
    with pytest.raises(ReplicationError, match="target:rewind-schema"):
        house.writer.begin_rewind(replace(copy, generation=3), old_again.version)
    house.writer.abandon_rewind(replace(copy, generation=3))
