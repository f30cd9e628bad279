"""Another writer commits between plan and commit: the token is read again, the merge planned again
(CORRECTNESS 14)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.connectors.target import FoldedBatch, MergeResult, TargetTable
from replicators.targets.lakehouse.writer import LakehouseWriter
from tests.spark.lakehouses import PLAIN, Lakehouse, table_schema
from tests.spark_fixtures import lakehouse_params

pytestmark = pytest.mark.spark
SECONDS = 120.0


def wait_for(path: Path) -> None:
    end = time.monotonic() + SECONDS
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path} did not come")
        time.sleep(0.02)


class Held(LakehouseWriter):
    """Waits where the statement is planned and runs, until it may go on."""

    def __init__(self, params: Any, spark: Any, folder: Path) -> None:
        super().__init__(params, spark)
        self.reached, self.go = folder / "reached", folder / "go"

    def _show(self, session: Any, batch: FoldedBatch) -> None:
        super()._show(session, batch)
        frame = session.table("replicator_batch")
        reached, go = self.reached, self.go

        def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            reached.touch()
            wait_for(go)
            yield from batches

        frame.mapInArrow(hold, frame.schema).createOrReplaceTempView("replicator_batch")


@pytest.fixture(params=["iceberg", "delta"])
def house(
    request: pytest.FixtureRequest, spark: Any, lakehouse_root: Path, tmp_path: Path
) -> Lakehouse:
    """A lakehouse of each format."""
    params = lakehouse_params(lakehouse_root, request.param)
    return Lakehouse(params, LakehouseWriter(params, spark), tmp_path)


def overtaken(house: Lakehouse, table: TargetTable, late: FoldedBatch, first: FoldedBatch) -> Held:
    """A writer whose merge of `late` was planned before and failed after another's merge of
    `first`."""
    held = Held(house.params, house.writer.spark, house.folder)
    ended: list[MergeResult | ReplicationError] = []

    def merge() -> None:
        try:
            ended.append(held.merge(table, late))
        except ReplicationError as err:
            ended.append(err)

    thread = threading.Thread(target=merge)
    thread.start()
    try:
        wait_for(held.reached)
        assert house.writer.merge(table, first).was_applied
    finally:
        held.go.touch()
        thread.join(SECONDS)
    (error,) = ended
    assert isinstance(error, ReplicationError)
    assert (error.code, error.retry) == ("target:conflict", Retry.AUTO)
    return held


@pytest.mark.long_with("delta")
def test_a_merge_that_another_process_did_meanwhile_is_not_done_again(house: Lakehouse) -> None:
    """Guards the token that `LakehouseWriter.merge` reads again at each try (CORRECTNESS 14): the
    other's commit carries the sequence, so the retry must find it done."""
    schema = table_schema("twice", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y"), (3, "c", "z")])
    batch = house.batch(schema, 9, [(2, "B", None), (3, None, None), (4, "d", "w")], deleted=[1])
    held = overtaken(house, table, batch, batch)
    assert not held.merge(table, batch).was_applied
    assert house.read(schema) == [(1, "a", "x"), (2, "B", None), (4, "d", "w")]


@pytest.mark.long_with("delta")
def test_a_merge_that_lost_against_an_earlier_one_is_planned_again_on_top_of_it(
    house: Lakehouse,
) -> None:
    """Guards `state.own_token` (CORRECTNESS 13 and 14): after a sequence that this process did not
    write, it must not merge until somebody asked for the token and planned from there."""
    schema = table_schema("overtaken", PLAIN)
    table = house.copied(schema, [(1, "a", "x"), (2, "b", "y")])
    first = house.batch(schema, 8, [(1, "first", None), (2, "first", None), (3, "first", None)])
    late = house.batch(schema, 9, [(2, "late", None), (3, "late", None), (4, "late", None)])
    held = overtaken(house, table, late, first)
    with pytest.raises(ReplicationError) as caught:
        held.merge(table, late)
    assert caught.value.code == "target:table-ahead", (
        "what it was planned from is not there any more"
    )
    assert held.token(table).sequence == 8  # type: ignore[union-attr]
    assert held.merge(table, late).was_applied
    assert house.read(schema) == [
        (1, "first", None),
        (2, "late", None),
        (3, "late", None),
        (4, "late", None),
    ]
    assert house.writer.token(table).sequence == 9  # type: ignore[union-attr]


@pytest.mark.long_with("delta")
def test_a_commit_whose_end_is_unknown_is_not_done_again(house: Lakehouse) -> None:
    """Guards `Written.tried` and the token inside the commit (CORRECTNESS 14): a retry that does
    not look would append the rows a second time."""

    class Unsure(LakehouseWriter):
        is_heard = False

        def _apply(self, *args: Any) -> None:
            super()._apply(*args)
            if not self.is_heard:
                raise RuntimeError("CommitStateUnknownException: the catalog did not answer")

    schema = table_schema("unsure", PLAIN, ())
    table = house.copied(schema, [(1, "a", "x")])
    batch = house.batch(schema, 5, [(1, "a", "x"), (2, "b", None)], append_only=True)
    writer = Unsure(house.params, house.writer.spark)
    with pytest.raises(ReplicationError) as caught:
        writer.merge(table, batch)
    assert caught.value.retry is Retry.AUTO
    writer.is_heard = True
    assert not writer.merge(table, batch).was_applied
    assert house.read(schema) == [(1, "a", "x"), (1, "a", "x"), (2, "b", None)]


@pytest.mark.long_with("delta")
def test_an_append_of_an_older_run_that_went_on_past_its_lease_is_seen(house: Lakehouse) -> None:
    """Guards CORRECTNESS 29: Iceberg takes a late append on top of anything (Delta refuses it). The
    newer run must say so, instead of leaving the rows there twice."""
    schema = table_schema("zombie", PLAIN, ())
    table = house.copied(schema, [(1, "a", "x")])
    newer = LakehouseWriter(house.params, house.writer.spark)
    newer.token(table)
    newer.merge(table, house.batch(schema, 8, [(2, "b", None)], append_only=True))
    late = house.batch(schema, 9, [(2, "b", None), (3, "c", None)], append_only=True)
    with pytest.raises(ReplicationError) as refused:
        house.writer.merge(table, late)
    assert refused.value.code == "target:table-ahead", "the older one looks before it writes"
    LakehouseWriter(house.params, house.writer.spark).merge(table, late)
    with pytest.raises(ReplicationError) as caught:
        newer.merge(table, house.batch(schema, 10, [(3, "c", None)], append_only=True))
    assert caught.value.code == "target:table-ahead"
