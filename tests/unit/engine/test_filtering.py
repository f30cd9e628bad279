"""A filtered table's copy holds the rows of which the filter is true, whatever they were before
(guards CORRECTNESS 20 and `engine.filtering`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.changes import Op
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import FoldedBatch
from runners.engine.fold.filtering import decide, filtered, undecided_keys
from runners.engine.fold.keyless import fold_counts
from runners.engine.fold.mirror import fold
from runners.engine.fold.plan import fold_to_file
from tests.unit.engine import keyless
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, apply, replay, table_of
from tests.unit.engine.test_fill import TABLE, Source, filler
from tests.unit.engine.test_fold import workload
from tests.unit.engine.test_multiset import apply as apply_counts

BY_ID = replace(SCHEMA, filter="id < 2 OR part = 'y' AND id <> 3")


def is_kept(key: Key) -> bool:
    return key[0] < 2 or (key[1] == "y" and key[0] != 3)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9), cut=st.integers(1, 39))
def test_a_filter_over_the_key_leaves_what_a_filtered_source_would_have(
    seed: int, cut: int
) -> None:
    """Rows move in and out by their keys, with values that were not sent: without the nulled
    origins a row that left would ask the target for values, without the delete it would stay under
    its old key."""
    before, changes = workload(seed, 40)
    target = {k: v for k, v in before.items() if is_kept(k)}
    for part in (changes[:cut], changes[cut:]):
        folded = filtered(fold(table_of(part), SCHEMA), BY_ID)
        made = apply(before, folded.rows, truncate=folded.truncate)
        rows = {(r["id"], r["part"]): r["_delete"] for r in folded.rows.to_pylist()}
        stays = {} if folded.truncate else {k: v for k, v in target.items() if k not in rows}
        target = stays | {k: made[k] for k, is_gone in rows.items() if not is_gone}
        before = replay(before, part)
        assert target == {k: v for k, v in before.items() if is_kept(k)}


def test_a_row_enters_leaves_and_enters_again() -> None:
    """Guards both halves: a row that leaves must go, and one that enters must come whole, also
    within one batch."""
    schema = replace(SCHEMA, filter="a = 'in'")
    start: dict[Key, Row] = {(1, "x"): {"a": "in", "b": "1"}}
    changes = [
        Change(Op.UPDATE, (1, "x"), ("out", "1")),
        Change(Op.UPDATE, (2, "x"), ("in", "2")),
        Change(Op.INSERT, (3, "x"), ("out", "3")),
        Change(Op.INSERT, (4, "x"), ("in", "4")),
        Change(Op.UPDATE, (4, "x"), (None, "4")),
        Change(Op.INSERT, (5, "x"), ("out", "5")),
        Change(Op.UPDATE, (5, "x"), ("in", None), unsent=frozenset("b")),
    ]
    folded = filtered(fold(table_of(changes), schema), schema)
    assert apply(start, folded.rows, truncate=False) == {
        (2, "x"): {"a": "in", "b": "2"},
        (5, "x"): {"a": "in", "b": "5"},
    }


def test_a_row_that_left_asks_for_no_value_that_was_not_sent() -> None:
    """Guards the cleared marks: a target without that row would fail for values that nobody
    needs."""
    schema = replace(SCHEMA, filter="id = 1")
    changes = [Change(Op.UPDATE, (9, "x"), unsent=frozenset("ab"), old=(1, "x"))]
    (old, new) = sorted(
        filtered(fold(table_of(changes), schema), schema).rows.to_pylist(), key=lambda r: r["id"]
    )
    assert (old["_delete"], new["_delete"]) == (True, True)
    assert (new["_unsent"], new["_origin"]) == (None, None)


def test_a_row_whose_value_was_not_sent_waits_for_it(tmp_path: Path) -> None:
    """Guards against a guess: a row would be kept or dropped by a NULL that it does not have. It is
    read at the source, and one that the source has no more goes; where an earlier change of the
    batch sent the value, nothing is read."""
    schema = replace(SCHEMA, filter="a = 'in'")
    changes = [
        Change(Op.UPDATE, (n, "x"), (None, f"b{n}"), unsent=frozenset("a")) for n in (1, 2, 3)
    ]
    changes.append(Change(Op.INSERT, (4, "x"), ("in", "b4")))
    part = fold_to_file(table_of(changes), schema, str(tmp_path / "batch.parquet"))
    batch = FoldedBatch(schema, (part.path,), 7, part.rows, part.unsent)
    keys = undecided_keys(batch)
    assert keys is not None
    assert keys["id"].to_pylist() == [1, 2, 3]
    source = Source((1, "x", "in", "b1"), (2, "x", "out", "b2"))
    filled = filler(source).fill(TABLE, batch, [], 100, keys)
    assert filled is not None
    decide(filled)
    rows = {r["id"]: r for r in pq.read_table(part.path).to_pylist()}
    assert {n: r["_delete"] for n, r in rows.items()} == {1: False, 2: True, 3: True, 4: False}
    assert (rows[1]["a"], rows[1]["b"], undecided_keys(filled)) == ("in", "b1", None)

    earlier = [Change(Op.UPDATE, (1, "x"), ("in", "0")), changes[0]]
    part = fold_to_file(table_of(earlier), schema, str(tmp_path / "sent.parquet"))
    assert undecided_keys(FoldedBatch(schema, (part.path,), 7, 1, part.unsent)) is None
    assert pq.read_table(part.path)["a"].to_pylist() == ["in"]


def test_a_filter_whose_column_is_gone_is_an_error_of_the_table() -> None:
    """Guards `filtering.bound`: an error of another kind would end the run, with every other table
    in it."""
    schema = replace(SCHEMA, filter="gone = 1")
    with pytest.raises(ReplicationError) as caught:
        filtered(fold(table_of([Change(Op.INSERT, (1, "x"))]), schema), schema)
    assert caught.value.code == "source:filter-invalid"


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 40))
def test_a_filtered_table_without_a_key_keeps_its_rows_as_often(seed: int, count: int) -> None:
    """Guards the filter over both images: an update over its edge adds or takes away one row
    only."""
    schema = replace(keyless.SCHEMA, filter="n = 1 AND NOT page = 'b'")

    def inside(rows: Counter[keyless.Row]) -> Counter[keyless.Row]:
        return Counter({r: c for r, c in rows.items() if r[1] == 1 and r[0] not in (None, "b")})

    start, changes = keyless.workload(seed, count)
    counted = fold_counts(keyless.table_of(changes), schema)
    assert apply_counts(inside(start), counted) == inside(keyless.replay(start, changes))
