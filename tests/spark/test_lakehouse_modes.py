"""Soft delete, history and append on Iceberg and on Delta: random transactions in several batches
give what a naive replay gives, each batch once, and upkeep changes nothing."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import Op, OpCounts
from replicators.connectors.model.modes import Mode, snapshot_values, stored
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.lakehouse.writer import LakehouseWriter
from runners.engine.fold import plan as fold_plan
from runners.engine.fold.mirror import Folded
from runners.engine.fold.plan import FoldPlan, fold_batch
from runners.engine.snapshot.chunks import with_constants
from runners.engine.store.protocol import ChangeFileRow
from runners.engine.tasks.on_spark import SparkTasks
from tests.spark.lakehouses import DELTA_LONG, Lakehouse
from tests.spark_fixtures import lakehouse_params
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, table_of
from tests.unit.engine.mode_changes import (
    EPOCH,
    apply_history,
    apply_soft,
    assert_sound,
    history_replay,
    in_order,
    moment,
    soft_replay,
    transactions,
)

pytestmark = pytest.mark.spark
_NUMBERS = itertools.count()


@pytest.fixture
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


class Copy:
    """A table copied in one mode: a snapshot, then merges of changes, as the engine makes them."""

    def __init__(self, house: Lakehouse, mode: Mode, start: dict[Key, Row]) -> None:
        self.house, self.mode = house, mode
        self.schema = replace(SCHEMA, id=TableId("shop", f"{mode}_{next(_NUMBERS)}"))
        self.table = TargetTable(self.schema.id, "r1", 1, mode=mode)
        writer = house.writer
        writer.begin_snapshot(self.table, self.schema)
        place = writer.snapshot_place(self.table, self.schema)
        place = replace(place, constants=snapshot_values(mode, EPOCH, 1))
        rows = [{"id": k[0], "part": k[1], **r} for k, r in start.items()]
        made = pa.Table.from_pylist(rows, schema=SCHEMA.arrow_schema())
        path = f"{place.folder}/1.parquet"
        pq.write_table(with_constants(made, place), path, **place.options)
        writer.load_snapshot_files(self.table, self.schema, [path])
        uuid = writer.publish_snapshot(self.table, self.schema, 1)
        self.table = replace(self.table, table_uuid=uuid)
        self.sequence = 1

    def batch(self, changes: list[Change]) -> FoldedBatch:
        """The next batch of these changes."""
        self.sequence += 1
        return folded(self.house.writer.spark, self.house.folder, self, changes)

    def merge(self, changes: list[Change]) -> FoldedBatch:
        """Fold and merge; the token must be there afterwards, also where no row changed."""
        batch = self.batch(changes)
        assert self.house.writer.merge(self.table, batch).was_applied
        token = self.house.writer.token(self.table)
        assert token is not None and token.sequence == batch.sequence
        return batch

    def rows(self) -> list[dict[str, Any]]:
        """The live rows, every column."""
        names = [c.name for c in stored(self.schema, self.mode).columns]
        return [dict(zip(names, r, strict=True)) for r in self.house.read(self.schema)]

    def soft(self) -> dict[Key, Row]:
        """The rows as `soft_replay` gives them."""
        return {(r.pop("id"), r.pop("part")): r for r in self.rows()}

    def versions(self) -> list[dict[str, Any]]:
        """The rows as `history_replay` gives them."""
        found = []
        for r in self.rows():
            assert r["_is_current"] == (r["_valid_to"] is None)
            found.append(
                {
                    "key": (r["id"], r["part"]),
                    "a": r["a"],
                    "b": r["b"],
                    "from": r["_valid_from"],
                    "to": r["_valid_to"],
                }
            )
        return found


def folded(
    spark: Any,
    folder: Path,
    copy: Copy | Schema,
    changes: list[Change],
    unsent: tuple[str, ...] = ("a", "b"),
) -> FoldedBatch:
    """A batch as the engine folds it, from one change file."""
    name = f"{copy.schema.id.name}-{copy.sequence}"
    path = folder / f"{name}-changes.parquet"
    table = table_of(changes)
    pq.write_table(table, path)
    truncates = sum(c.op is Op.TRUNCATE for c in changes)
    file = ChangeFileRow(
        table=copy.schema.id, segment=1, path=str(path), version="v", schema=copy.schema,
        counts=OpCounts(inserts=len(changes) - truncates, truncates=truncates),
        first_sequence=0, last_sequence=table.num_rows,
        first_committed_at=0.0, last_committed_at=0.0, first_position=1, last_position=1,
        size_bytes=0, crc32=zlib.crc32(path.read_bytes()), unsent=unsent, has_key_changes=True,
    )  # fmt: skip
    plan = FoldPlan(
        copy.schema, (file,), -1, 0, copy.sequence, str(folder / f"{name}-merge"), mode=copy.mode
    )
    return fold_batch(SparkTasks(spark), plan)[0]


def batches(changes: list[Change], size: int) -> list[list[Change]]:
    """The changes in batches of about `size`, whole transactions each."""
    found: list[list[Change]] = [[]]
    for change in changes:
        last = found[-1]
        if len(last) >= size and last[-1].transaction != change.transaction:
            found.append([])
        found[-1].append(change)
    return found


@DELTA_LONG
def test_soft_delete_is_what_a_naive_replay_gives(house: Lakehouse) -> None:
    """Guards the soft-delete MERGE: flags, values kept, revivals, changed keys, TRUNCATE with
    survivors in one commit; a batch that is merged again after a crash does nothing."""
    start, changes = transactions(0, 70)
    assert sum(c.op is Op.TRUNCATE for c in changes) >= 1
    copy = Copy(house, Mode.SOFT_DELETE, start)
    assert copy.soft() == soft_replay(start, [])
    for part in batches(changes, 24):
        last = copy.merge(part)
    expected = soft_replay(start, changes)
    assert copy.soft() == expected
    assert not house.writer.merge(copy.table, last).was_applied
    house.writer.maintain(copy.table)
    assert copy.soft() == expected


@DELTA_LONG
@pytest.mark.long
def test_a_truncate_alone_flags_every_living_row_and_moves_the_token(house: Lakehouse) -> None:
    """Guards the statement for a batch without rows: rows flagged before keep their time, and a
    TRUNCATE of a table where nothing lives still carries the token."""
    start: dict[Key, Row] = {(n, "x"): {"a": f"a{n}", "b": None} for n in range(3)}
    changes = [
        Change(Op.DELETE, (0, "x"), transaction=1, at=5),
        Change(Op.TRUNCATE, (0, "x"), transaction=2, at=9),
        Change(Op.TRUNCATE, (0, "x"), transaction=3, at=11),
    ]
    copy = Copy(house, Mode.SOFT_DELETE, start)
    for change in changes:
        copy.merge([change])
    assert copy.soft() == soft_replay(start, changes)
    assert {r["_deleted_at"] for r in copy.soft().values()} == {moment(5), moment(9)}


@DELTA_LONG
def test_history_is_what_a_naive_replay_gives(house: Lakehouse) -> None:
    """Guards the history MERGE: versions without overlap or gap, unsent values of the version
    before, changed keys, TRUNCATE; a batch that is merged again after a crash does nothing."""
    start, changes = transactions(0, 70)
    copy = Copy(house, Mode.HISTORY, start)
    for part in batches(changes, 24):
        last = copy.merge(part)
    expected = in_order(history_replay(start, changes))
    assert_sound(copy.versions())
    assert in_order(copy.versions()) == expected
    assert not house.writer.merge(copy.table, last).was_applied
    house.writer.maintain(copy.table)
    assert in_order(copy.versions()) == expected
    copy.merge([Change(Op.TRUNCATE, (0, "x"), transaction=900, at=900)])
    copy.merge([Change(Op.TRUNCATE, (0, "x"), transaction=901, at=901)])
    assert all(v["to"] for v in copy.versions())


@DELTA_LONG
def test_append_holds_snapshot_and_every_change_once(house: Lakehouse) -> None:
    """Guards the append INSERT and its token: every change once, in order, unsent columns named."""
    start, changes = transactions(5, 40)
    copy = Copy(house, Mode.APPEND, start)
    for part in batches(changes, 15):
        last = copy.merge(part)
    assert not house.writer.merge(copy.table, last).was_applied
    rows = copy.rows()
    assert sum(r["_operation"] == "snapshot" for r in rows) == len(start)
    logged = [r for r in rows if r["_operation"] != "snapshot"]
    halves = sum(c.old is not None for c in changes)
    assert len(logged) == len(changes) + halves
    unsent = [sorted(c.unsent) for c in changes if c.op is Op.UPDATE]
    found = [r["_unsent"] for r in logged if r["_operation"] == "update"]
    assert sorted(filter(None, found)) == sorted(filter(None, unsent))


@dataclass
class Schema:
    """What `folded` needs to know of a copy."""

    mode: Mode
    schema: TableSchema = SCHEMA
    sequence: int = 1


@pytest.mark.parametrize(
    "mode",
    [Mode.HISTORY, Mode.APPEND, pytest.param(Mode.SOFT_DELETE, marks=pytest.mark.long)],
)
def test_a_large_merge_folds_in_tasks_to_the_same(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """Guards the split into buckets by key, where the two halves of a changed key lie in different
    ones."""
    monkeypatch.setattr(fold_plan, "ROWS_HERE", -1)
    monkeypatch.setattr(fold_plan, "ROWS_A_TASK", 20)
    start, found = transactions(9, 60)
    assert not any(c.op is Op.TRUNCATE for c in found)
    changes = [replace(c, unsent=frozenset()) for c in found]
    batch = folded(spark, tmp_path, Schema(mode), changes, unsent=())
    assert len(batch.paths) > 1
    rows = pa.concat_tables([pq.read_table(p) for p in batch.paths])
    if mode is Mode.APPEND:
        assert rows.num_rows == len(changes) + sum(c.old is not None for c in changes)
        return
    result = Folded(rows, batch.truncate, batch.unsent, batch.has_origins)
    if mode is Mode.SOFT_DELETE:
        assert apply_soft(soft_replay(start, []), result) == soft_replay(start, changes)
    else:
        versions = apply_history(history_replay(start, []), result)
        assert in_order(versions) == in_order(history_replay(start, changes))
