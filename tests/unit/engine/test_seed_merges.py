"""The three merges that the seed's own SQL gets wrong, each as small as it can be. There the last
change of a key is looked up by the key before it, so that a changed key is followed for one step
only, and an INSERT, which has none, never finds its row."""

from __future__ import annotations

import pytest

from replicators.connectors.model.changes import Op
from runners.engine.fold.mirror import fold
from runners.engine.fold.soft_delete import fold_soft
from tests.unit.engine.changes import SCHEMA, Change, Key, Row, apply, table_of
from tests.unit.engine.mode_changes import apply_soft, soft_replay

ALICE: dict[Key, Row] = {(0, "x"): {"a": "Alice", "b": "kept"}}
UNSENT = frozenset("b")
FIRST = Change(Op.UPDATE, (1, "x"), ("Alice", None), UNSENT, old=(0, "x"))
SECOND = Change(Op.UPDATE, (2, "x"), ("Bob", None), UNSENT, old=(1, "x"))
GONE = Change(Op.DELETE, (1, "x"))
BACK = Change(Op.INSERT, (0, "x"), ("Carol", "new"))


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([FIRST, SECOND], {(2, "x"): {"a": "Bob", "b": "kept"}}),
        ([FIRST, GONE], {}),
        ([FIRST, GONE, BACK], {(0, "x"): {"a": "Carol", "b": "new"}}),
    ],
    ids=["0 to 1 to 2", "changed, then deleted", "and inserted again"],
)
def test_a_changed_key_is_followed_through_a_batch(
    changes: list[Change], left: dict[Key, Row]
) -> None:
    """Guards CORRECTNESS 8, `fold`: each change of a key deletes the key before it, and the row's
    origin is handed on from key to key. Without the delete Alice's row stays; without the origin
    its unsent value is lost."""
    folded = fold(table_of(changes), SCHEMA)
    assert apply(ALICE, folded.rows, truncate=folded.truncate) == left


def test_a_row_that_is_inserted_after_its_soft_delete_is_one_row_that_lives() -> None:
    """Guards the merge by the key itself, `fold_soft`, in one batch and in two: by the key before
    the change an INSERT finds no row, and a second one with the same key stands beside the
    deleted."""
    gone = Change(Op.DELETE, (0, "x"), at=1)
    back = Change(Op.INSERT, (0, "x"), ("Carol", "new"), at=2)
    start = soft_replay(ALICE, [])
    at_once = apply_soft(start, fold_soft(table_of([gone, back]), SCHEMA))
    flagged = apply_soft(start, fold_soft(table_of([gone]), SCHEMA))
    later = apply_soft(flagged, fold_soft(table_of([back]), SCHEMA))
    assert flagged[0, "x"]["_is_deleted"] is True
    for rows in (at_once, later):
        assert set(rows) == {(0, "x")}
        assert (rows[0, "x"]["a"], rows[0, "x"]["_is_deleted"]) == ("Carol", False)
