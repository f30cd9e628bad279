"""The lakehouse writer on Iceberg and on Delta: copy, publish, merge, tokens."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Int, String, Timestamp
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, KeyRange, TargetTable
from replicators.targets.lakehouse import naming
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


def numbered(schema: TableSchema, *ordinals: int) -> TableSchema:
    """The same with the source's numbers of its columns."""
    columns = zip(schema.columns, ordinals, strict=True)
    return replace(schema, columns=tuple(replace(c, ordinal=n) for c, n in columns))


def _code(call: Any) -> str:
    with pytest.raises(ReplicationError) as caught:
        call()
    return caught.value.code


def test_a_copy_is_seen_only_when_published_and_carries_its_token(house: Lakehouse) -> None:
    """Guards `publish_snapshot` (CORRECTNESS 13 and 15): rows, token and UUID become visible
    together, and doing it again after a crash changes nothing."""
    schema = table_schema("copied", PLAIN)
    table = TargetTable(schema.id, "r1", 1)
    house.writer.begin_snapshot(table, schema)
    house.load(table, schema, [(1, "a", None)])
    assert house.writer.token(table) is None
    uuid = house.writer.publish_snapshot(table, schema, 7)
    token = house.writer.token(table)
    assert token is not None
    assert (token.replicator, token.generation, token.sequence, token.table_uuid) == (
        "r1",
        1,
        7,
        uuid,
    )
    assert house.writer.publish_snapshot(table, schema, 7) == uuid
    assert house.read(schema) == [(1, "a", None)]


@DELTA_LONG
def test_a_table_that_was_dropped_and_copied_again_is_merged_into(house: Lakehouse) -> None:
    """As where a table is removed with its target and added again: what was written to the first
    one is no sign of another writer. Found by the adversary (seed 201)."""
    schema = table_schema("came_back", PLAIN)
    table = house.copied(schema, [(1, "a", "x")])
    house.writer.merge(table, house.batch(schema, 5, [(1, "b", None)]))
    house.writer.drop(table)
    again = house.copied(schema, [(2, "c", None)], sequence=9)
    assert house.writer.merge(again, house.batch(schema, 10, [(3, "d", None)])).was_applied
    assert house.read(schema) == [(2, "c", None), (3, "d", None)]


def test_a_batch_inserts_updates_and_deletes_once(house: Lakehouse) -> None:
    """Guards the token in `LakehouseWriter.merge` (CORRECTNESS 13): a batch whose sequence the
    table has is not applied again."""
    schema = table_schema("merged", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y"), (3, "c", "z")])
    batch = house.batch(schema, 9, [(2, "B", None), (3, None, None), (4, "d", "w")], deleted=[1])
    assert house.writer.merge(table, batch).was_applied
    assert not house.writer.merge(table, batch).was_applied
    assert house.read(schema) == [(1, "a", "x"), (2, "B", None), (4, "d", "w")]
    assert house.writer.token(table).sequence == 9  # type: ignore[union-attr]


@pytest.mark.long_with("delta")
def test_unsent_columns_keep_the_targets_values_also_of_an_old_key(house: Lakehouse) -> None:
    """Guards the third step of CORRECTNESS 9 in `statements.mirror`: NULL would overwrite the
    value, and a changed key would lose it without `_origin`."""
    schema = table_schema("unsent", PLAIN)
    table = house.copied(schema, [(1, "a", "long"), (2, "b", "longer")])
    batch = house.batch(
        schema,
        5,
        [(1, "A", None), (20, "B", None), (2, None, None)],
        deleted=[2],
        unsent=[(b"\x04", None), (b"\x04", 2), (None, None)],
    )
    partial = FoldedBatch(
        schema, batch.paths, 5, 3, unsent=("note",), has_origins=True, ranges=batch.ranges
    )
    house.writer.merge(table, partial)
    assert house.read(schema) == [(1, "A", "long"), (20, "B", "longer")]


@DELTA_LONG
def test_an_unsent_column_of_a_row_that_is_not_there_stops_the_table(house: Lakehouse) -> None:
    """Guards `keys.failing` and `missing_rows` (CORRECTNESS 9): without the error the row would be
    inserted with NULL in place of what was not sent."""
    schema = table_schema("row_absent", PLAIN)
    table = house.copied(schema, [(1, "a", "x")])
    for bits in ((b"\x04", None), (b"\x04", 77)):
        batch = house.batch(schema, 5, [(9, "n", None)], unsent=[bits])
        partial = FoldedBatch(
            schema,
            batch.paths,
            5,
            1,
            unsent=("note",),
            has_origins=bits[1] is not None,
            ranges=batch.ranges,
        )
        assert _code(lambda p=partial: house.writer.merge(table, p)) == "target:row-missing"
        assert house.writer.missing_rows(table, partial).to_pylist() == [{"id": 9}]
    assert house.read(schema) == [(1, "a", "x")]


@pytest.mark.long_with("delta")
def test_a_truncate_replaces_everything_with_the_survivors(house: Lakehouse) -> None:
    """Guards CORRECTNESS 6: emptied and filled in two commits, readers would see an empty table;
    also an empty one carries its token."""
    schema = table_schema("truncated", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y")])
    house.writer.merge(table, house.batch(schema, 5, [(7, "s", None)], truncate=True))
    assert house.read(schema) == [(7, "s", None)]
    house.writer.merge(table, FoldedBatch(schema, (), 6, 0, truncate=True))
    assert house.read(schema) == []
    assert house.writer.token(table).sequence == 6  # type: ignore[union-attr]


def test_a_table_without_key_is_appended_to(house: Lakehouse) -> None:
    """Guards the token for batches without keys (CORRECTNESS 13): nothing else would keep a
    repeated merge from doubling rows."""
    schema = table_schema("appended", PLAIN, ())
    table = house.copied(schema, [(1, "a", "x")])
    batch = house.batch(schema, 5, [(1, "a", "x"), (2, "b", None)], append_only=True)
    house.writer.merge(table, batch)
    house.writer.merge(table, batch)
    assert house.read(schema) == [(1, "a", "x"), (1, "a", "x"), (2, "b", None)]


@pytest.mark.long_with("delta")
def test_an_empty_batch_moves_only_the_token(house: Lakehouse) -> None:
    """Guards `without_rows` (CORRECTNESS 14): the token must advance where nothing is left of a
    batch, or it is taken for a target that is behind."""
    schema = table_schema("idle", PLAIN)
    table = house.copied(schema, [(1, "a", "x")])
    assert house.writer.merge(table, FoldedBatch(schema, (), 8, 0)).was_applied
    assert house.writer.token(table).sequence == 8  # type: ignore[union-attr]
    assert house.read(schema) == [(1, "a", "x")]


@pytest.mark.long_with("delta")
def test_a_resync_shows_the_old_rows_until_it_is_published(house: Lakehouse) -> None:
    """Its names hold what Spark would replace: in statements, and where rows are appended to a
    branch."""
    schema = table_schema("again_${x}", PLAIN)
    table = house.copied(schema, [(1, "a", "x")])
    extra = replace(schema.column("note"), name="ex${t}ra", ordinal=4)
    changed = replace(schema, columns=(*schema.columns[:2], extra))
    second = TargetTable(schema.id, "r1", 2, table.table_uuid)
    house.writer.begin_snapshot(second, changed)
    house.load(second, changed, [(5, "n", "e")])
    house.writer.merge(table, house.batch(schema, 3, [(2, "b", None)]))
    assert [r[:2] for r in house.read(schema)] == [(1, "a"), (2, "b")]
    assert house.writer.publish_snapshot(second, changed, 4) == table.table_uuid
    assert house.read(changed) == [(5, "n", "e")]
    assert (
        _code(lambda: house.writer.merge(table, house.batch(schema, 5, [(3, "c", None)])))
        == "target:table-ahead"
    )


@DELTA_LONG
def test_a_copy_whose_columns_stand_in_another_order_keeps_their_values(house: Lakehouse) -> None:
    """Where a source has no numbers (`upto`), a column's is its place: taken over from the copy
    before, they would give each column the other's values as the new copy is published."""
    schema = replace(table_schema("turned", PLAIN), upto=1, copy_numbers=True)
    table = house.copied(schema, [(1, "a", "x")])
    a, b, c = schema.columns
    turned = replace(schema, columns=(a, replace(c, ordinal=2), replace(b, ordinal=3)), upto=2)
    second = TargetTable(schema.id, "r1", 2, table.table_uuid)
    house.writer.begin_snapshot(second, turned)
    assert house.read(schema) == [(1, "a", "x")]
    house.load(second, turned, [(1, "y", "b")])
    house.writer.publish_snapshot(second, turned, 4)
    assert house.records(schema) == [{"id": 1, "name": "b", "note": "y"}]


@pytest.mark.long_with("delta")
def test_a_table_that_is_gone_or_foreign_is_not_written(house: Lakehouse) -> None:
    """Guards `state.own_token`, `begin` and `drop` (CORRECTNESS 13): a table that another made
    under our name would be merged into, replaced or removed."""
    schema = table_schema("strange", PLAIN)
    batch = house.batch(schema, 5, [(2, "b", None)])
    table = TargetTable(schema.id, "r1", 1)
    assert _code(lambda: house.writer.merge(table, batch)) == "target:table-missing"
    house.copied(schema, [(1, "a", "x")])
    other = TargetTable(schema.id, "r2", 1)
    assert _code(lambda: house.writer.merge(other, batch)) == "target:table-replaced"
    assert _code(lambda: house.writer.begin_snapshot(other, schema)) == "target:table-taken"
    replaced = TargetTable(schema.id, "r1", 1, "another-uuid")
    assert _code(lambda: house.writer.merge(replaced, batch)) == "target:table-replaced"
    house.writer.drop(other)
    assert house.read(schema) == [(1, "a", "x")]
    house.writer.drop(table)
    assert house.writer.token(table) is None


def test_columns_are_added_dropped_and_widened_once(house: Lakehouse) -> None:
    """Guards `LakehouseWriter.evolve` (CORRECTNESS 5): done again after a crash it must find its
    own work, and rows of both schemas keep their values."""
    old = table_schema("shaped", {"id": Int(64), "small": Int(32), "gone": Int(32)})
    new = table_schema("shaped", {"id": Int(64), "small": Int(64), "more": PLAIN["note"]})
    table = house.copied(old, [(1, 2, 3)])
    if house.form == "delta":
        new = table_schema("shaped", {"id": Int(64), "small": Int(32), "more": PLAIN["note"]})
    new = numbered(new, 1, 2, 4)
    assert house.writer.evolve(table, old, new)
    assert house.writer.evolve(table, old, new) == []
    house.writer.merge(table, house.batch(new, 5, [(2, 2**31 - 1, "m")]))
    assert house.read(new) == [(1, 2, None), (2, 2**31 - 1, "m")]


@pytest.mark.long_with("delta")
def test_renamed_columns_keep_their_values_and_a_new_one_is_filled(house: Lakehouse) -> None:
    """Guards CORRECTNESS 21: by names, a rename would empty the column, and a swap mix two; the
    fill must leave the token."""
    old = numbered(table_schema("named", {"id": Int(64), "a": Int(32), "b": Int(32)}), 1, 2, 3)
    new = numbered(
        table_schema("named", {"id": Int(64), "b": Int(32), "a": Int(32), "c": Int(32)}), 1, 2, 3, 4
    )
    table = house.copied(old, [(1, 2, 3)])
    before = house.writer.token(table)
    house.writer.evolve(table, old, new)
    house.writer.fill_column(table, new.column("c"), 7)
    assert house.writer.evolve(table, old, new) == []
    assert house.read(new) == [(1, 2, 3, 7)]
    assert house.writer.token(table) == before
    house.writer.merge(table, house.batch(new, 9, [(2, 20, 30, None)]))
    assert house.read(new) == [(1, 2, 3, 7), (2, 20, 30, None)]


ODD_TEXTS = (
    "price_${currency}",
    "${env:HOME}",
    "\x0001",
    "\x00",
    "back\\slash\\\\n",
    'it\'s "q"',
    "two\nlines\r",
    "\\u0041 %_",
)


@DELTA_LONG
def test_texts_of_any_content_are_found_as_keys(house: Lakehouse) -> None:
    """Guards literals: read as another text, a listed key or the end of an interval leaves its row
    out of the merge, so that an update doubles it and a delete does nothing. Fails where Spark
    replaces `${...}` in statements, and where NUL is escaped as `\\0`."""
    schema = table_schema("odd_texts", {"id": String(), "name": String(), "note": String()})
    texts = sorted(ODD_TEXTS)
    table = house.copied(schema, [(t, "old", None) for t in texts])
    rows = [(t, "new", t) for t in texts]
    house.writer.merge(table, house.batch(schema, 9, rows, keys=tuple(texts), ranges=()))
    assert house.read(schema) == rows
    gone, ranges = [0, 3, 5], tuple(KeyRange(t, t) for t in texts)
    house.writer.merge(table, house.batch(schema, 10, rows, deleted=gone, ranges=ranges))
    assert house.read(schema) == [r for i, r in enumerate(rows) if i not in gone]
    house.writer.fill_column(table, schema.column("name"), "${x}")
    assert {r[1] for r in house.read(schema)} == {"${x}"}


@DELTA_LONG
def test_tables_merged_side_by_side_keep_their_own_tokens(house: Lakehouse) -> None:
    """Guards a session for each call alone, `Sessions.lent` (CORRECTNESS 14): tokens travel by
    session conf, so in a shared session tables would swap them."""
    schemas = [table_schema(f"side_{n}", PLAIN) for n in range(3)]
    tables = [house.copied(s, [(0, "a", "x")]) for s in schemas]

    def work(number: int) -> None:
        for turn in range(3):
            batch = house.batch(
                schemas[number], 100 * number + 10 + turn, [(turn, f"{number}", None)]
            )
            house.writer.merge(tables[number], batch)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [house.writer.token(t).sequence for t in tables] == [12, 112, 212]  # type: ignore[union-attr]
    assert [len(house.read(s)) for s in schemas] == [3, 3, 3]


@DELTA_LONG
def test_upkeep_keeps_rows_and_token(house: Lakehouse) -> None:
    """Guards the token that `maintain` copies forward (CORRECTNESS 14 and 32): a compaction without
    it would look like a table of somebody else."""
    schema = table_schema("kept", PLAIN)
    table = house.copied(schema, [(n, "a", "x") for n in range(20)])
    for turn in range(10):
        house.writer.merge(table, house.batch(schema, 10 + turn, [(turn, "b", None)]))
    before = house.read(schema)
    house.writer.maintain(table)
    assert house.read(schema) == before
    assert house.writer.token(table).sequence == 19  # type: ignore[union-attr]
    assert house.writer.merge(table, house.batch(schema, 30, [(1, "c", None)])).was_applied


@pytest.mark.long
def test_a_delta_log_is_kept_as_long_as_the_history_also_once_that_was_raised(
    house: Lakehouse, spark: Any
) -> None:
    """Left at a day, Delta's own clean-up takes versions away that the history promises."""
    if house.form != "delta":
        pytest.skip("Iceberg's versions go by our own expiry")

    def kept() -> str | None:
        values = DeltaTable(house.writer.format.folder(names)).metadata().configuration
        return values["delta.logRetentionDuration"]

    schema = table_schema("remembered", PLAIN)
    names = naming.names(house.params, schema.id)
    table = house.copied(schema, [(1, "a", "x")])
    assert kept() == "interval 1 days"
    longer = LakehouseWriter(replace(house.params, history_minutes=43200), spark)
    longer.maintain(table)
    assert kept() == "interval 30 days"
    assert longer.token(table) == house.writer.token(table)


def test_the_first_and_the_last_moment_are_the_same_to_a_reader_that_is_not_spark(
    house: Lakehouse,
) -> None:
    """Written as Spark does by itself (INT96), they are read as nanoseconds into Delta: the year 1
    becomes 1754."""
    first = datetime(1, 1, 1, tzinfo=UTC)
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    schema = table_schema(
        "far_away", {"id": Int(64), "at": Timestamp(zone=True), "day": Timestamp()}
    )
    rows = [(n, at, at.replace(tzinfo=None)) for n, at in ((1, first), (2, last))]
    table = house.copied(schema, rows)
    assert house.read(schema) == rows
    later = [(3, last, None), (4, first, None)]
    house.writer.merge(table, house.batch(schema, 10, later))
    assert house.read(schema) == [*rows, *later]


@pytest.mark.long_with("delta")
def test_only_rows_whose_values_are_nowhere_are_missing(house: Lakehouse) -> None:
    """Guards `keys.missing` (CORRECTNESS 9): looked for under the new key, a moved row would be
    read at the source without need; deletes and whole rows lack nothing."""
    schema = table_schema("looked_for", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y")])
    rows = [(1, "A", None), (20, "B", None), (30, "C", None), (4, "d", "whole"), (2, None, None)]
    bits = [(b"\x04", None), (b"\x04", 2), (b"\x04", 3), (None, None), (None, None)]
    batch = house.batch(
        schema, 5, rows, deleted=[4], unsent=bits, ranges=(KeyRange(1, 4), KeyRange(20, 30))
    )
    partial = replace(batch, unsent=("note",), has_origins=True)
    assert house.writer.missing_rows(table, partial).to_pylist() == [{"id": 30}]


@pytest.mark.long_with("delta")
def test_a_copy_stays_clustered_so_that_a_merge_reads_few_files(house: Lakehouse) -> None:
    """Files of the copy keep their intervals of keys; several of them in one would hide these from
    pruning."""
    schema = table_schema("clustered", PLAIN)
    table = TargetTable(schema.id, "r1", 1)
    house.writer.begin_snapshot(table, schema)
    place = house.writer.snapshot_place(table, schema)
    paths = [f"{place.folder}/{n}.parquet" for n in range(6)]
    for number, path in enumerate(paths):
        made = house.rows(schema, [(100 * number + i, "a", "x" * number) for i in range(100)])
        with pq.ParquetWriter(path, place.arrow, **place.options) as out:
            out.write_table(made.cast(place.arrow))
    house.writer.load_snapshot_files(table, schema, paths)
    house.writer.publish_snapshot(table, schema, 1)
    names = naming.names(house.params, schema.id)
    session = house.writer.spark
    frame = session.table(house.writer.format.path(names))
    spans = frame.groupBy("_metadata.file_path" if house.form == "delta" else "_file")
    found = spans.agg(F.min("id").alias("low"), F.max("id").alias("high")).collect()
    assert sorted((r["low"], r["high"]) for r in found) == [
        (100 * n, 100 * n + 99) for n in range(6)
    ]


@DELTA_LONG
def test_upkeep_makes_one_sorted_file_of_many_small_ones(house: Lakehouse) -> None:
    """Guards `maintain` (CORRECTNESS 32): without compaction each merge opens more files, and
    unsorted ones can't be pruned by key."""
    schema = table_schema("swept", PLAIN)
    table = house.copied(schema, [(n, "a", "x") for n in range(0, 40, 2)])
    for turn in range(8):
        ids = (turn, 39 - turn)
        rows = [(n, f"{turn}", None) for n in ids]
        ranges = tuple(KeyRange(n, n) for n in sorted(ids))
        house.writer.merge(table, house.batch(schema, 10 + turn, rows, ranges=ranges))
    before = house.read(schema)
    house.writer.maintain(table)
    assert house.read(schema) == before
    names = naming.names(house.params, schema.id)
    frame = house.writer.spark.table(house.writer.format.path(names))
    place = "_metadata.file_path" if house.form == "delta" else "_file"
    rows = frame.selectExpr(f"{place} AS file", "id").collect()
    assert len({r["file"] for r in rows}) == 1
    if house.form == "iceberg":
        assert [r["id"] for r in rows] == sorted(r["id"] for r in rows)
