"""Left-out changes are left out by the fold in Spark tasks too, which large merges take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from replicators.connectors.model.changes import Op
from runners.engine.fold import plan
from runners.engine.tasks.on_spark import SparkTasks
from tests.unit.engine.changes import Change, table_of
from tests.unit.engine.test_excluded import plan_of

pytestmark = pytest.mark.spark


def test_a_large_merge_leaves_the_same_changes_out(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `FoldPlan.excluded` on its way into `folding._read_bucket` and `_last_truncate`: lost
    there, deletes and truncates would be applied by large merges only."""
    monkeypatch.setattr(plan, "ROWS_HERE", -1)
    monkeypatch.setattr(plan, "ROWS_A_TASK", -1)
    changes = [Change(Op.INSERT, (n, "x"), (f"v{n}", None)) for n in range(20)]
    changes += [Change(Op.DELETE, (n, "x")) for n in range(0, 20, 2)]
    changes += [Change(Op.TRUNCATE, (0, "x")), Change(Op.INSERT, (99, "x"), ("last", None))]
    batch, counts = plan.fold_batch(
        SparkTasks(spark), plan_of(table_of(changes), tmp_path, "deletes")
    )
    rows = [row for path in batch.paths for row in pq.read_table(path).to_pylist()]
    assert {r["id"] for r in rows} == {*range(20), 99}
    assert not batch.truncate and not any(r["_delete"] for r in rows)
    assert (counts.inserts, counts.deletes, counts.truncates) == (21, 0, 0)
