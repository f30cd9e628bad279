"""The files target's lanes in Spark's tasks, and its files in Spark's reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replicators.connectors.contract.sink import Change, as_seen, batch, resolved
from replicators.connectors.model.changes import Op
from replicators.targets.files.params import FilesParams
from replicators.targets.files.writer import FilesSink
from runners.engine.tasks.on_spark import SparkTasks
from tests import replayed
from tests.contract.test_files import seen
from tests.unit.targets.test_files_docs import blocks
from tests.unit.targets.test_files_sink import SCHEMA, TABLE, generation

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def test_the_changes_of_a_key_stay_in_order_over_sparks_tasks(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards lanes that other processes write, and `docs/files.md`'s recipe for Spark."""
    monkeypatch.setattr("replicators.targets.files.writer.ROWS_HERE", 0)
    sink = FilesSink(FilesParams(location=str(tmp_path)), SparkTasks(spark))
    sink.begin(TABLE, SCHEMA)
    changes = [Change(11 + i, Op.UPDATE, 1, f"v{i}", at=i * 0.05) for i in range(4000)]
    assert sink.deliver(TABLE, batch(changes, SCHEMA, 10, 5)) == 4000
    sink.resolved(TABLE, resolved(4010, 100_000))
    assert list(map(seen, replayed.records(generation(tmp_path)))) == as_seen(changes)
    code: dict[str, Any] = {}
    exec("\n".join(blocks("python")), code)  # noqa: S102 (our own page)
    frame = code["changes"](spark, str(tmp_path / "shop.orders"))
    assert frame.count() == 4000
    (last,) = frame.orderBy("_sequence", ascending=False).select("after.*").take(1)
    assert (last.id, last.note) == (1, "v3999")
