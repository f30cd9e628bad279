"""Tables without a key in Iceberg and in Delta: each row as often as at the source (guards
CORRECTNESS 12 and `statements.multiset`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode, stored
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.lakehouse.writer import LakehouseWriter
from runners.engine.fold import plan as fold_plan
from runners.engine.fold.keyless import with_hashes
from runners.engine.fold.plan import fold_to_file
from runners.engine.tasks.on_spark import SparkTasks
from tests.spark.lakehouses import DELTA_LONG, Lakehouse
from tests.spark_fixtures import lakehouse_params
from tests.unit.engine import keyless
from tests.unit.engine.keyless import Change, Row, replay, table_of, workload
from tests.unit.engine.test_excluded import plan_of

pytestmark = pytest.mark.spark


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


def copied(house: Lakehouse, schema: TableSchema, chunks: Sequence[Sequence[Row]]) -> TargetTable:
    """A first copy in a file for each chunk, as tasks write them."""
    table = TargetTable(schema.id, "r1", 1, mode=Mode.MULTISET)
    house.writer.begin_snapshot(table, schema)
    place = house.writer.snapshot_place(table, schema)
    paths = []
    for number, chunk in enumerate(chunks):
        rows = house.rows(schema, chunk)
        paths.append(f"{place.folder}/{number}.parquet")
        staged = with_hashes(rows, rows.column_names, place.arrow).cast(place.arrow)
        pq.write_table(staged, paths[-1])
    house.writer.load_snapshot_files(table, schema, paths)
    return replace(table, table_uuid=house.writer.publish_snapshot(table, schema, 1))


def batch(
    house: Lakehouse, schema: TableSchema, sequence: int, parts: Sequence[Sequence[Change]]
) -> FoldedBatch:
    """What a merge of these changes is given, folded in as many parts."""
    made = [
        fold_to_file(
            table_of(p, schema), schema, f"{house.folder}/{sequence}-{n}", mode=Mode.MULTISET
        )
        for n, p in enumerate(parts)
    ]
    return FoldedBatch(
        schema,
        tuple(m.path for m in made),
        sequence,
        sum(m.rows for m in made),
        truncate=any(m.truncate for m in made),
        keys=tuple(made[0].keys) if len(made) == 1 else (),
        mode=Mode.MULTISET,
    )


def held(house: Lakehouse, schema: TableSchema) -> Counter[Row]:
    """The copy's rows; equal ones are numbered from 1 without a gap, under one digest."""
    found: dict[bytes, list[int]] = {}
    rows: Counter[Row] = Counter()
    images: dict[bytes, Row] = {}
    for page, n, digest, number in house.read(stored(schema, Mode.MULTISET)):
        found.setdefault(digest, []).append(number)
        assert images.setdefault(digest, (page, n)) == (page, n)
        rows[page, n] += 1
    assert all(sorted(numbers) == [*range(1, len(numbers) + 1)] for numbers in found.values())
    assert len(images) == len(rows)
    return rows


def named(name: str) -> TableSchema:
    return replace(keyless.SCHEMA, id=TableId("shop", name))


@DELTA_LONG
def test_batches_merged_one_after_the_other_equal_a_naive_replay(house: Lakehouse) -> None:
    """Guards the whole mode: without the numbers equal rows would go together, without the
    snapshot's digests none."""
    schema = named("visits")
    start, changes = workload(11, 90)
    rows = list(start.elements())
    table = copied(house, schema, [rows[:2], rows[2:]])
    assert held(house, schema) == start
    state = start
    for sequence, at in enumerate(range(0, 90, 15), 2):
        part = changes[at : at + 15]
        house.writer.merge(table, batch(house, schema, sequence, [part]))
        state = replay(state, part)
        assert held(house, schema) == state


@pytest.mark.long_with("delta")
def test_parts_of_a_batch_are_counted_together_and_a_repeated_merge_not_again(
    house: Lakehouse,
) -> None:
    """Guards the sum over files: a large merge is folded in parts, and a row that came in one may
    go in another; and the token, without which a merge done again would count twice."""
    schema = named("parts")
    table = copied(house, schema, [[("a", 1)] * 3])
    came, gone = Change(Op.INSERT, ("b", None)), Change(Op.DELETE, old=("b", None))
    parts = [
        [gone, Change(Op.DELETE, old=("a", 1))],
        [came],
        [came, Change(Op.DELETE, old=("a", 1))],
    ]
    whole = batch(house, schema, 2, parts)
    assert house.writer.merge(table, whole).was_applied
    assert not house.writer.merge(table, whole).was_applied
    assert held(house, schema) == Counter({("a", 1): 1, ("b", None): 1})


@DELTA_LONG
def test_a_row_that_goes_more_often_than_it_is_there_fails_the_merge(house: Lakehouse) -> None:
    """Guards "never silently ignored": the copy would differ from the source, and nobody would
    know."""
    schema = named("absent")
    table = copied(house, schema, [[("a", 1)]])
    for sequence, changes in enumerate(
        (
            [Change(Op.DELETE, old=("a", 1))] * 2,
            [Change(Op.INSERT, ("b", 1)), Change(Op.UPDATE, ("c", 1), ("x", 1))],
            [Change(Op.TRUNCATE), Change(Op.DELETE, old=("a", 1))],
        ),
        2,
    ):
        with pytest.raises(ReplicationError) as caught:
            house.writer.merge(table, batch(house, schema, sequence, [changes]))
        assert caught.value.code == "target:row-absent"
        assert held(house, schema) == Counter({("a", 1): 1})


@DELTA_LONG
def test_a_truncate_leaves_what_came_after_it(house: Lakehouse) -> None:
    """Guards CORRECTNESS 6 in one commit."""
    schema = named("emptied")
    table = copied(house, schema, [[("a", 1)] * 2])
    changes = [Change(Op.TRUNCATE), *[Change(Op.INSERT, ("c", 2))] * 2]
    house.writer.merge(table, batch(house, schema, 2, [changes]))
    assert held(house, schema) == Counter({("c", 2): 2})
    house.writer.merge(table, batch(house, schema, 3, [[Change(Op.TRUNCATE)]]))
    assert held(house, schema) == Counter()


def test_a_large_merge_is_counted_in_tasks(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the mode on the way through Spark: folded as inserts, updates and deletes would be
    lost there. And a TRUNCATE after which nothing came."""
    monkeypatch.setattr(fold_plan, "ROWS_HERE", -1)
    monkeypatch.setattr(fold_plan, "ROWS_A_TASK", -1)
    start, changes = workload(5, 60)
    start, changes = Counter(start), [c for c in changes if c.op is not Op.TRUNCATE]
    plan = replace(plan_of(table_of(changes), tmp_path), schema=keyless.SCHEMA, mode=Mode.MULTISET)
    done, counts = fold_plan.fold_batch(SparkTasks(spark), plan)
    net: Counter[Row] = Counter()
    for row in pa.concat_tables([pq.read_table(p) for p in done.paths]).to_pylist():
        net[row["page"], row["n"]] += row["_occurrence"]
    expected: Counter[Row] = Counter()
    for change in changes:
        expected[change.new or ("", 0)] += change.new is not None
        expected[change.old or ("", 0)] -= change.old is not None
    assert {r: n for r, n in net.items() if n} == {r: n for r, n in expected.items() if n}
    assert (done.mode, done.append_only, counts.rows) == (Mode.MULTISET, False, len(changes))

    path = plan.files[0].path
    emptied = table_of([Change(Op.INSERT, ("a", 1)), Change(Op.TRUNCATE)])
    again = plan_of(emptied, tmp_path)
    file = replace(again.files[0], counts=replace(again.files[0].counts, inserts=1, truncates=1))
    assert file.path == path
    done, _ = fold_plan.fold_batch(
        SparkTasks(spark), replace(again, schema=keyless.SCHEMA, mode=Mode.MULTISET, files=(file,))
    )
    assert (done.truncate, done.rows) == (True, 0)
