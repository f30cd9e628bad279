"""The changes of a table without a key leave each row as often as a naive replay does (guards
`engine.multiset`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import ROW_HASH
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Decimal, Int, LogicalType, String
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.fold.keyless import Counted, fold_counts, with_hashes
from runners.engine.schema.keyless import check_schema
from tests.unit.engine.keyless import SCHEMA, Change, Row, replay, table_of, workload


def apply(start: Counter[Row], counted: Counted) -> Counter[Row]:
    """What a target that holds `start` holds afterwards."""
    state = Counter() if counted.truncate else Counter(start)
    for row in counted.rows.to_pylist():
        state[row["page"], row["n"]] += row["_occurrence"]
    assert min(state.values(), default=0) >= 0
    return +state


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 60))
def test_net_counts_applied_to_the_target_equal_a_naive_replay(seed: int, count: int) -> None:
    """Guards `multiset.fold_counts` with random inserts, updates, deletes and truncates of equal
    rows: a wrong sign or a row grouped with another is a row too many or too few."""
    start, changes = workload(seed, count)
    assert apply(start, fold_counts(table_of(changes), SCHEMA)) == replay(start, changes)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), cut=st.integers(1, 39))
def test_two_folds_one_after_the_other_equal_one(seed: int, cut: int) -> None:
    """Guards that net counts add up: wherever the batch is cut, `multiset._net` may drop only what
    cancels out."""
    start, changes = workload(seed, 40)
    state = start
    for part in (changes[:cut], changes[cut:]):
        state = apply(state, fold_counts(table_of(part), SCHEMA))
    assert state == replay(start, changes)


def test_each_row_comes_out_once_and_what_cancels_out_not_at_all() -> None:
    """Guards the grouping by digest: a row that came out twice would be counted twice against the
    target."""
    row: Row = ("a", None)
    changes = [Change(Op.INSERT, row)] * 3 + [
        Change(Op.INSERT, ("b", 1)),
        Change(Op.DELETE, old=("b", 1)),
    ]
    counted = fold_counts(table_of(changes), SCHEMA)
    assert [(r["page"], r["n"], r["_occurrence"]) for r in counted.rows.to_pylist()] == [
        ("a", None, 3)
    ]
    assert len(set(counted.rows[ROW_HASH].to_pylist())) == 1


def test_rows_before_a_truncate_do_not_count() -> None:
    """Guards CORRECTNESS 6: without the barrier what was emptied would come back, or be taken away
    twice."""
    changes = [
        Change(Op.INSERT, ("a", 1)),
        Change(Op.DELETE, old=("b", 1)),
        Change(Op.TRUNCATE),
        Change(Op.INSERT, ("c", 2)),
    ]
    counted = fold_counts(table_of(changes), SCHEMA)
    assert counted.truncate
    assert apply(Counter({("z", 9): 4}), counted) == Counter({("c", 2): 1})


@pytest.mark.parametrize("op", [Op.UPDATE, Op.DELETE])
def test_a_change_without_its_before_image_is_an_error(op: Op) -> None:
    """Guards exactness: the table's identity is no longer FULL, and a row whose end is not known
    would stay for ever."""
    changes = table_of([Change(op, ("a", 1))])
    with pytest.raises(ReplicationError) as caught:
        fold_counts(changes, SCHEMA)
    assert caught.value.code == "source:before-missing"


def test_rows_of_a_snapshot_get_the_digests_of_the_log() -> None:
    """Guards CORRECTNESS 12: a row that came by snapshot must be found when the log takes it
    away."""
    rows: list[Row] = [("a", 1), (None, None)]
    by_log = fold_counts(table_of([Change(Op.INSERT, r) for r in rows]), SCHEMA).rows
    schema = pa.schema(
        [*SCHEMA.arrow_schema(), (ROW_HASH, pa.binary()), ("_occurrence", pa.int64())]
    )
    copied = pa.table([by_log["page"], by_log["n"]], schema=SCHEMA.arrow_schema())
    staged = with_hashes(copied, ["n", "page"], schema)
    assert staged[ROW_HASH].to_pylist() == by_log[ROW_HASH].to_pylist()
    assert staged.schema.names == schema.names
    assert with_hashes(copied, ["page"], SCHEMA.arrow_schema()) is copied


def shaped(**columns: LogicalType) -> TableSchema:
    return replace(SCHEMA, columns=tuple(Column(n, t, "native") for n, t in columns.items()))


@pytest.mark.parametrize(
    "new",
    [
        shaped(a=String()),
        shaped(a=String(), renamed=Int(32)),
        shaped(a=String(), n=String()),
        shaped(a=String(), n=Decimal(10, 2)),
    ],
)
def test_a_schema_change_that_changes_digests_stops_the_table(new: TableSchema) -> None:
    """Guards the rows that are there: their digests hold the dropped column, and no delete would
    find them."""
    with pytest.raises(ReplicationError) as caught:
        check_schema(shaped(a=String(), n=Int(32)), new)
    assert caught.value.code == "target:evolve"


def test_added_columns_and_wider_numbers_go_on() -> None:
    """Guards the other half of `multiset.check_schema`: digests leave NULLs out and know no width
    (CORRECTNESS 12), so stopping the table here would ask for a copy without need."""
    old = shaped(n=Int(32), d=Decimal(6, 2))
    check_schema(old, shaped(new=String(), n=Int(64), d=Decimal(12, 2)))
