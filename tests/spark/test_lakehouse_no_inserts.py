"""Tables whose inserts are left out, in both formats: the MERGE changes only rows that the copy
has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import FoldedBatch
from runners.engine.fold import plan as fold_plan
from runners.engine.fold.plan import FoldPlan
from tests.spark.lakehouses import DELTA_LONG, Lakehouse
from tests.spark.test_lakehouse_modes import Copy, batches, house
from tests.unit.engine import no_inserts
from tests.unit.engine.changes import Change, Key, Row
from tests.unit.engine.mode_changes import transactions

__all__ = ["house"]
pytestmark = pytest.mark.spark


@pytest.fixture
def without_inserts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every merge of a `Copy` leaves inserts out."""
    fold = fold_plan.fold_batch

    def folded(tasks: Any, plan: FoldPlan) -> tuple[FoldedBatch, Any]:
        return fold(tasks, replace(plan, no_inserts=True))

    monkeypatch.setattr("tests.spark.test_lakehouse_modes.fold_batch", folded)


def merged(copy: Copy, changes: list[Change], size: int) -> FoldedBatch:
    """The last batch, once all are merged."""
    for part in batches(changes, size):
        last = copy.merge(part)
    assert not copy.house.writer.merge(copy.table, last).was_applied
    return last


@DELTA_LONG
@pytest.mark.usefixtures("without_inserts")
def test_a_mirror_without_inserts_is_what_a_naive_replay_keeps(house: Lakehouse) -> None:
    """Guards the mirror's MERGE: no new rows, moved ones put under their new key only where the
    copy has them, values that were not sent taken from there, keys that other rows took emptied."""
    start, changes = transactions(31, 60)
    changes = [c for c in changes if c.op is not Op.TRUNCATE]
    copy = Copy(house, Mode.MIRROR, start)
    assert merged(copy, changes, 20).has_origins
    expected = no_inserts.mirror_replay(start, changes)
    assert expected and copy.soft() == expected
    copy.merge([Change(Op.TRUNCATE, (0, "x")), Change(Op.UPDATE, (1, "x"), ("a", "b"))])
    assert copy.soft() == {}


@DELTA_LONG
@pytest.mark.usefixtures("without_inserts")
def test_soft_delete_without_inserts_is_what_a_naive_replay_keeps(house: Lakehouse) -> None:
    """Guards the soft-delete MERGE: of a key's rows the last whose origin lives, flags that no
    left-out row moves, TRUNCATE."""
    start, changes = transactions(0, 70)
    assert any(c.op is Op.TRUNCATE for c in changes)
    copy = Copy(house, Mode.SOFT_DELETE, start)
    merged(copy, changes, 24)
    assert copy.soft() == no_inserts.soft_replay(start, changes)


@pytest.mark.usefixtures("without_inserts")
@pytest.mark.parametrize("house", ["iceberg"], indirect=True)
def test_a_large_merge_gives_the_same(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Guards the fold in tasks: where keys change, no bucket may hold only a part of a row's
    way."""
    monkeypatch.setattr(fold_plan, "ROWS_HERE", -1)
    monkeypatch.setattr(fold_plan, "ROWS_A_TASK", -1)
    start: dict[Key, Row] = {(n, "x"): {"a": f"a{n}", "b": f"b{n}"} for n in range(6)}
    changes = [Change(Op.INSERT, (20 + n, "x"), ("new", None)) for n in range(6)]
    changes += [
        Change(Op.UPDATE, (n + 10, "x"), ("moved", None), frozenset("b"), old=(n, "x"))
        for n in (0, 1, 20)
    ]
    copy = Copy(house, Mode.MIRROR, start)
    copy.merge(changes)
    assert copy.soft() == no_inserts.mirror_replay(start, changes)
    plain = [Change(Op.UPDATE, (n, "x"), ("again", "b")) for n in (4, 5, 21)]
    copy.merge([*plain, Change(Op.DELETE, (3, "x")), Change(Op.INSERT, (3, "x"), ("new", None))])
    assert {k: r["a"] for k, r in copy.soft().items()} == {
        (2, "x"): "a2", (4, "x"): "again", (5, "x"): "again", (10, "x"): "moved",
        (11, "x"): "moved",
    }  # fmt: skip
