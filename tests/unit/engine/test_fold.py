"""The fold is right whatever the order of changes: it equals a naive replay (guards
`engine.fold`)."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.changes import Op
from runners.engine.fold.mirror import (
    MAX_RANGES,
    few_keys,
    fold,
    fold_inserts,
    join_ranges,
    key_ranges,
)
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, apply, replay, table_of

KEYS: list[Key] = [(n, p) for n in range(4) for p in ("x", "y")]


def workload(seed: int, count: int) -> tuple[dict[Key, Row], list[Change]]:
    """A start state and changes that a source could send."""
    rng = random.Random(seed)
    start: dict[Key, Row] = {k: {"a": f"a{k}", "b": f"b{k}"} for k in KEYS if rng.random() < 0.5}
    alive, changes = set(start), []
    for n in range(count):
        free = [k for k in KEYS if k not in alive]
        act = rng.random()
        if act < 0.02:
            changes.append(Change(Op.TRUNCATE, (0, "x")))
            alive.clear()
        elif free and (act < 0.3 or not alive):
            key = rng.choice(free)
            changes.append(Change(Op.INSERT, key, (f"i{n}", rng.choice([None, f"j{n}"]))))
            alive.add(key)
        elif alive:
            changes.append(_touch(rng, sorted(alive), free, n))
            last = changes[-1]
            alive -= {last.old or last.key}
            if last.op is not Op.DELETE:
                alive.add(last.key)
    return start, changes


def _touch(rng: random.Random, alive: list[Key], free: list[Key], n: int) -> Change:
    key = rng.choice(alive)
    if rng.random() < 0.25:
        return Change(Op.DELETE, key)
    unsent = frozenset(c for c in ("a", "b") if rng.random() < 0.4)
    values = (f"u{n}", f"v{n}")
    if free and rng.random() < 0.4:
        return Change(Op.UPDATE, rng.choice(free), values, unsent, old=key)
    return Change(Op.UPDATE, key, values, unsent)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 60))
def test_a_fold_merged_into_the_target_equals_a_naive_replay(seed: int, count: int) -> None:
    """Guards `fold.replay` (CORRECTNESS 6 to 9) with random inserts, key changes, unsent columns
    and truncates: any step left out leaves a row lost, doubled or with another's value."""
    start, changes = workload(seed, count)
    folded = fold(table_of(changes), SCHEMA)
    assert apply(start, folded.rows, truncate=folded.truncate) == replay(start, changes)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), cut=st.integers(1, 39))
def test_two_folds_one_after_the_other_equal_one(seed: int, cut: int) -> None:
    """Guards what a fold leaves to the target, `_unsent` and `_origin`: wherever the batch is cut,
    the rest must find the same rows."""
    start, changes = workload(seed, 40)
    state = start
    for part in (changes[:cut], changes[cut:]):
        if part:
            folded = fold(table_of(part), SCHEMA)
            state = apply(state, folded.rows, truncate=folded.truncate)
    assert state == replay(start, changes)


def test_a_swap_of_two_keys_keeps_both_unsent_values() -> None:
    """Guards the origins in `fold.replay` (CORRECTNESS 8 and 9): filled from the row under its new
    key, each would get the other's values."""
    start: dict[Key, Row] = {
        (1, "x"): {"a": "one", "b": "1"},
        (2, "x"): {"a": "two", "b": "2"},
    }
    changes = [
        Change(Op.UPDATE, (9, "x"), unsent=frozenset("ab"), old=(1, "x")),
        Change(Op.UPDATE, (1, "x"), unsent=frozenset("ab"), old=(2, "x")),
        Change(Op.UPDATE, (2, "x"), unsent=frozenset("ab"), old=(9, "x")),
    ]
    folded = fold(table_of(changes), SCHEMA)
    assert folded.has_origins
    assert apply(start, folded.rows, truncate=False) == {
        (1, "x"): {"a": "two", "b": "2"},
        (2, "x"): {"a": "one", "b": "1"},
    }


def test_each_key_comes_out_once() -> None:
    """Guards `fold.key_codes`: a key that came out twice would make the target's MERGE fail, or
    insert it twice."""
    _, changes = workload(7, 200)
    rows = fold(table_of(changes), SCHEMA).rows
    keys = list(zip(rows["id"].to_pylist(), rows["part"].to_pylist(), strict=True))
    assert len(keys) == len(set(keys))


def test_inserts_of_a_keyless_table_stay_as_they_are() -> None:
    """Guards `fold_inserts`: equal rows of a table without a key are different rows, and a delete,
    which could hit any of them, adds none."""
    changes = [Change(Op.INSERT, (1, "x"), ("v", None))] * 3 + [Change(Op.DELETE, (1, "x"))]
    folded = fold_inserts(table_of(changes), SCHEMA)
    assert folded.rows.num_rows == 3
    assert not pc.any(folded.rows["_delete"]).as_py()


@settings(max_examples=100, deadline=None)
@given(ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=300))
def test_ranges_cover_every_key_and_origin(ids: list[int]) -> None:
    """Guards CORRECTNESS 11 in `key_ranges` and `few_keys`: a key, or an old key that fills another
    row, outside of them is not found in the target and inserted again."""
    changes = [
        Change(Op.UPDATE, (n, "x"), unsent=frozenset("a"), old=(~n, "old"))
        for n in sorted(set(ids))
    ]
    folded = fold(table_of(changes), SCHEMA)
    alive = folded.rows.filter(pc.invert(folded.rows["_delete"]))
    folded = replace(folded, rows=alive)
    found = {k for n in ids for k in (n, ~n)}
    assert set(few_keys(folded, SCHEMA, 50)) == (found if len(found) <= 50 else set())
    ranges = key_ranges(folded, SCHEMA)
    assert len(ranges) <= MAX_RANGES
    assert all(any(low <= n <= high for low, high in ranges) for n in found)


def test_joined_ranges_cover_all_parts_and_stay_few() -> None:
    """Guards `join_ranges`, for merges that several tasks folded (CORRECTNESS 11): a key that falls
    between two intervals is inserted again; one part that can't prune lets none prune."""
    parts = [[(n * 10, n * 10 + 3)] for n in range(100)]
    joined = join_ranges(parts)
    assert len(joined) <= MAX_RANGES
    assert all(any(a <= low and high <= b for a, b in joined) for [(low, high)] in parts)
    assert join_ranges([[(1, 9)], [(2, 3)], [(5, 6), (8, 11)]]) == [(1, 11)]
    assert join_ranges([[(1, 2)], []]) == []


def test_a_timed_fold_says_when_each_key_changed_last() -> None:
    """Also a key that was given up, and one that was deleted after a TRUNCATE (`Settles`)."""
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    changes = [
        Change(Op.INSERT, (1, "x"), ("a", "b"), at=1),
        Change(Op.TRUNCATE, (0, "x"), at=2),
        Change(Op.INSERT, (2, "x"), ("a", "b"), at=3),
        Change(Op.DELETE, (3, "x"), at=4),
        Change(Op.UPDATE, (5, "x"), ("c", "d"), old=(4, "x"), at=5),
        Change(Op.UPDATE, (2, "x"), ("e", None), frozenset({"b"}), at=6),
    ]
    folded = fold(table_of(changes), SCHEMA, timed=True)
    found = {
        row["id"]: (row["_delete"], (row["_committed_at"] - start).total_seconds())
        for row in folded.rows.to_pylist()
    }
    assert found == {2: (False, 6), 3: (True, 4), 4: (True, 5), 5: (False, 5)}
    assert folded.truncated_at == start + dt.timedelta(seconds=2)
    assert "_committed_at" not in fold(table_of(changes), SCHEMA).rows.column_names
