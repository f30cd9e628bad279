"""The folds of soft delete, history and append equal naive replays, whatever the changes and
wherever a batch ends."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.changes import Op, change_schema
from runners.engine.fold.append import fold_append
from runners.engine.fold.history import fold_history
from runners.engine.fold.soft_delete import fold_soft
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

SEEDS, COUNTS = st.integers(0, 10**9), st.integers(1, 60)


def cut(changes: list[Change], at: int) -> list[list[Change]]:
    """The changes in two batches, cut where a transaction ends."""
    while 0 < at < len(changes) and changes[at].transaction == changes[at - 1].transaction:
        at += 1
    return [part for part in (changes[:at], changes[at:]) if part]


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS, count=COUNTS, at=st.integers(0, 60))
def test_soft_delete_equals_a_naive_replay_in_one_batch_or_two(
    seed: int, count: int, at: int
) -> None:
    """Guards `fold_soft`: flags, last values of deleted rows, revivals, changed keys, TRUNCATE."""
    start, changes = transactions(seed, count)
    state = soft_replay(start, [])
    for part in cut(changes, min(at, count)):
        state = apply_soft(state, fold_soft(table_of(part), SCHEMA))
    assert state == soft_replay(start, changes)


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS, count=COUNTS, at=st.integers(0, 60))
def test_history_equals_a_naive_replay_in_one_batch_or_two(seed: int, count: int, at: int) -> None:
    """Guards `fold_history`: a version a key and transaction, no overlap where a clock goes back,
    unsent values."""
    start, changes = transactions(seed, count)
    versions = history_replay(start, [])
    for part in cut(changes, min(at, count)):
        versions = apply_history(versions, fold_history(table_of(part), SCHEMA))
    assert_sound(versions)
    assert in_order(versions) == in_order(history_replay(start, changes))


def test_a_key_that_was_never_seen_and_is_deleted_is_inserted_flagged() -> None:
    """Guards the soft fold's memory of what a key held when it went."""
    changes = [
        Change(Op.INSERT, (1, "x"), ("one", "1"), at=5),
        Change(Op.UPDATE, (1, "x"), ("two", None), frozenset("b"), at=6),
        Change(Op.DELETE, (1, "x"), at=7),
    ]
    (row,) = fold_soft(table_of(changes), SCHEMA).rows.to_pylist()
    assert (row["a"], row["b"], row["_delete"], row["_unsent"]) == ("two", "1", True, None)
    assert row["_deleted_at"] == moment(7)


def test_what_a_deleted_row_held_is_asked_of_the_target_never_null() -> None:
    """Guards the unsent marks of deleted rows: without them the target's values would be
    overwritten by NULL."""
    folded = fold_soft(table_of([Change(Op.DELETE, (1, "x"))]), SCHEMA)
    assert folded.unsent == ("a", "b")
    start: dict[Key, Row] = {(1, "x"): {"a": "kept", "b": "too", "_is_deleted": False}}
    assert apply_soft(start, folded)[1, "x"]["a"] == "kept"


def test_whole_old_rows_are_the_last_values_of_deleted_rows() -> None:
    """Guards the use of REPLICA IDENTITY FULL (rule 9, the row's own old image): for a key that the
    target never had, and in append, the values of a deleted row come from the log itself."""
    schema = replace(SCHEMA, full_before=True)
    key = {"id": 1, "part": "x"}
    row = {
        "_sequence": 1, "_op": int(Op.DELETE), "_committed_at": moment(3), "_transaction": 1,
        "_position": 1, "_unchanged": None, **key, "_before": {**key, "a": "last", "b": None},
    }  # fmt: skip
    changes = pa.Table.from_pylist([row], schema=change_schema(schema))
    (soft,) = fold_soft(changes, schema).rows.to_pylist()
    assert (soft["a"], soft["b"], soft["_unsent"], soft["_delete"]) == ("last", None, None, True)
    (logged,) = fold_append(changes, schema).rows.to_pylist()
    assert (logged["a"], logged["_unsent"], logged["_operation"]) == ("last", None, "delete")


def test_two_updates_in_one_transaction_are_one_version_and_in_two_are_two() -> None:
    """Guards the grouping by transaction."""
    changes = [
        Change(Op.UPDATE, (1, "x"), ("a1", "b"), transaction=1, at=1),
        Change(Op.UPDATE, (1, "x"), ("a2", "b"), transaction=1, at=1),
        Change(Op.UPDATE, (1, "x"), ("a3", "b"), transaction=2, at=4),
    ]
    rows = [r for r in fold_history(table_of(changes), SCHEMA).rows.to_pylist() if not r["_delete"]]
    assert [(r["a"], r["_valid_from"], r["_valid_to"]) for r in rows] == [
        ("a2", moment(1), moment(4)),
        ("a3", moment(4), None),
    ]


def test_append_keeps_every_change_in_order_and_says_what_was_not_sent() -> None:
    """Guards rule 9 for append: a value that the log did not carry is named, never passed off as
    NULL; a changed key is a delete and an update."""
    changes = [
        Change(Op.INSERT, (1, "x"), ("a", None), at=1),
        Change(Op.UPDATE, (1, "x"), ("A", None), frozenset("b"), at=2),
        Change(Op.UPDATE, (2, "x"), ("A", "B"), old=(1, "x"), at=3),
        Change(Op.DELETE, (2, "x"), at=4),
        Change(Op.TRUNCATE, (0, "x"), at=5),
    ]
    rows = fold_append(table_of(changes), SCHEMA).rows.to_pylist()
    shown = [(r["_sequence"], r["_operation"], r["id"], r["a"], r["b"], r["_unsent"]) for r in rows]
    assert shown[:5] == [
        (1, "insert", 1, "a", None, None),
        (3, "update", 1, "A", None, ["b"]),
        (4, "delete", 1, None, None, ["a", "b"]),
        (5, "update", 2, "A", "B", None),
        (7, "delete", 2, None, None, ["a", "b"]),
    ]
    assert (shown[5][:2], shown[5][5]) == ((9, "truncate"), None)
    assert rows[1]["_committed_at"] == moment(2) > EPOCH


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, count=COUNTS)
def test_the_appended_log_replayed_gives_the_source(seed: int, count: int) -> None:
    """Guards append's completeness: nothing is folded away, so that the log alone rebuilds every
    row."""
    start, changes = transactions(seed, count)
    state = {k: dict(r) for k, r in start.items()}
    gone: Row = {}
    rows = fold_append(table_of(changes), SCHEMA).rows.to_pylist()
    numbers = [row["_sequence"] for row in rows]
    assert numbers == sorted(set(numbers)), "a reader can't tell the order by it"
    for row in rows:
        key, op = (row["id"], row["part"]), row["_operation"]
        if op == "truncate":
            state.clear()
        elif op == "delete":
            gone = state.pop(key)
        else:
            known = state.get(key, {} if op == "insert" else gone)
            sent = {n: row[n] for n in ("a", "b") if n not in (row["_unsent"] or ())}
            state[key] = {**known, **sent}
    now = {k: v for k, v in soft_replay(start, changes).items() if not v["_is_deleted"]}
    assert state == {k: {n: v[n] for n in ("a", "b")} for k, v in now.items()}
