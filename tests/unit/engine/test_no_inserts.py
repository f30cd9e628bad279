"""A table whose inserts are left out: its copy keeps up the rows that it has, and no others (guards
`engine.fold_no_inserts` and `engine.left_out`)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.model.changes import COUNTED, Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSelection
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.fold.no_inserts import fold_no_inserts
from runners.engine.fold.skipped import SkippedOperations, skipped_operations
from tests.unit.engine import no_inserts
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, table_of
from tests.unit.engine.mode_changes import transactions

ORACLES = {
    Mode.MIRROR: (no_inserts.mirror_replay, no_inserts.apply_mirror),
    Mode.SOFT_DELETE: (no_inserts.soft_replay, no_inserts.apply_soft),
}
MODES = st.sampled_from(sorted(ORACLES))
EXCLUDED = st.sampled_from([("inserts",), ("inserts", "updates"), ("inserts", "deletes")])


def merged(mode: Mode, start: dict[Key, Row], parts: list[list[Change]]) -> dict[Key, Row]:
    """The copy after one merge for each part."""
    replay, apply = ORACLES[mode]
    state = replay(start, [])
    for part in filter(None, parts):
        state = apply(state, fold_no_inserts(table_of(part), SCHEMA, mode))
    return state


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 60), mode=MODES, excluded=EXCLUDED)
def test_the_copy_is_what_a_naive_replay_keeps_however_the_changes_are_cut(
    seed: int, count: int, mode: Mode, excluded: tuple[str, ...]
) -> None:
    """Guards the fold of stays: a MERGE that only lacked its WHEN NOT MATCHED would bring back a
    row that was deleted and inserted again, lose or invent rows that changed their keys, and end
    otherwise where the batches are cut otherwise."""
    start, changes = transactions(seed, count)
    ops = skipped_operations(TableSelection(SCHEMA.id, excluded=excluded), SCHEMA, mode).ops
    kept = [c for c in changes if c.op not in ops]
    expected = ORACLES[mode][0](start, kept)
    rng = random.Random(seed)
    for _ in range(3):
        cuts = sorted(rng.randrange(len(kept) + 1) for _ in range(rng.randrange(5)))
        places = [0, *cuts, len(kept)]
        parts = [kept[a:b] for a, b in zip(places, places[1:], strict=False)]
        assert merged(mode, start, parts) == expected


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 60))
def test_rows_held_are_those_of_the_snapshot_that_are_still_there(seed: int, count: int) -> None:
    """Guards the oracle: told by the rows' identity alone, without a thought of keys that are
    taken."""
    start, changes = transactions(seed, count)
    place: dict[Key, tuple[str, int]] = {k: ("snapshot", n) for n, k in enumerate(start)}
    for number, change in enumerate(changes):
        if change.op is Op.TRUNCATE:
            place.clear()
        elif change.op is Op.DELETE:
            del place[change.key]
        elif change.op is Op.INSERT:
            place[change.key] = ("inserted", number)
        elif change.old:
            place[change.key] = place.pop(change.old)
    held = {key for key, (came, _) in place.items() if came == "snapshot"}
    assert set(no_inserts.mirror_replay(start, changes)) == held


def test_what_a_plain_merge_would_get_wrong() -> None:
    """Guards, one by one: deleted and inserted again; an update of a row that is not held; a key
    that a row that is not held takes over; a chain of keys with values that were not sent."""
    start: dict[Key, Row] = {(n, "x"): {"a": f"a{n}", "b": f"b{n}"} for n in range(4)}
    changes = [
        Change(Op.DELETE, (0, "x")),
        Change(Op.INSERT, (0, "x"), ("again", None)),
        Change(Op.UPDATE, (0, "x"), ("again", "2")),
        Change(Op.UPDATE, (9, "x"), ("unknown", None)),
        Change(Op.DELETE, (1, "x")),
        Change(Op.UPDATE, (1, "x"), ("moved in", None), old=(8, "x")),
        Change(Op.UPDATE, (7, "x"), ("kept", None), frozenset("b"), old=(2, "x")),
        Change(Op.UPDATE, (6, "x"), (None, None), frozenset("ab"), old=(7, "x")),
    ]
    expected = {(3, "x"): start[3, "x"], (6, "x"): {"a": "kept", "b": "b2"}}
    assert merged(Mode.MIRROR, start, [changes]) == expected


def test_a_deleted_row_keeps_its_time_when_its_key_lives_on_elsewhere() -> None:
    """Guards the flags: the delete of a row that was inserted later, and so left out, must not move
    `_deleted_at` of the row that had its key before, nor its update change the values that it had
    in the end."""
    start: dict[Key, Row] = {(0, "x"): {"a": "a", "b": "b"}}
    changes = [
        Change(Op.DELETE, (0, "x"), transaction=1, at=5),
        Change(Op.INSERT, (0, "x"), ("other", None), transaction=2, at=6),
        Change(Op.UPDATE, (0, "x"), ("other", "2"), transaction=3, at=7),
        Change(Op.DELETE, (0, "x"), transaction=4, at=8),
    ]
    for parts in ([changes], [[c] for c in changes]):
        (row,) = merged(Mode.SOFT_DELETE, start, parts).values()
        assert (row["a"], row["b"], row["_is_deleted"]) == ("a", "b", True)
        assert row["_deleted_at"].second == 5


def test_a_log_of_changes_only_lacks_them_and_a_copy_that_takes_nothing_stays() -> None:
    """Guards the cheap ways: append folds nothing, and a copy without any kind of change must not
    lose rows to inserts."""
    without = TableSelection(SCHEMA.id, excluded=("inserts",))
    assert skipped_operations(without, SCHEMA, Mode.APPEND) == SkippedOperations((Op.INSERT,))
    nothing = TableSelection(SCHEMA.id, excluded=("inserts", "updates", "deletes"))
    assert skipped_operations(nothing, SCHEMA, Mode.MIRROR) == SkippedOperations(COUNTED)
    assert skipped_operations(without, SCHEMA, Mode.MIRROR) == SkippedOperations(
        (), no_inserts=True
    )


@pytest.mark.parametrize(
    ("schema", "mode", "word"),
    [
        (SCHEMA, Mode.HISTORY, "versions"),
        (replace(SCHEMA, key=()), Mode.MIRROR, "key"),
        (replace(SCHEMA, key=(), full_before=True), Mode.MULTISET, "key"),
        (replace(SCHEMA, filter="id < 3"), Mode.MIRROR, "filter"),
    ],
)
def test_where_rows_could_not_be_told_apart_the_table_stops(
    schema: object, mode: Mode, word: str
) -> None:
    """Guards the refusal: these would silently hold rows that were left out, or lack rows that were
    not."""
    with pytest.raises(ReplicationError, match=word) as caught:
        skipped_operations(TableSelection(SCHEMA.id, excluded=("inserts",)), schema, mode)  # type: ignore[arg-type]
    assert caught.value.code == "target:mode-inserts"
