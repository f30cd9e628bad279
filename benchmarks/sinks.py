"""What the lines into targets of changes share: a session as a run has it, and the delivery of the
changes that wait in the change log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.capture import Taken
from benchmarks.workload import TABLE, Workload
from replicators.connectors.model.changes import OpCounts
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import (
    BatchKind,
    ChangeBatch,
    ChangeSink,
    TargetPlugin,
    TargetTable,
)
from runners.engine.apply.deliver import lanes_of
from runners.engine.fold.plan import FoldPlan
from runners.engine.tasks.opening import workers_conf
from runners.engine.tasks.spark import open_session


@contextmanager
def session(folder: Path, plugin: TargetPlugin, params: Any) -> Iterator[Any]:
    """A session as a run has it."""
    conf = {**plugin.spark_conf(params), **workers_conf(place.SOURCE, plugin)}
    opened = open_session(place.settings(folder), "benchmarks", plugin.jars(params), conf)
    opened.sparkContext.setLogLevel("ERROR")
    try:
        yield opened
    finally:
        opened.stop()


def deliver(sink: ChangeSink, load: Workload, taken: Taken) -> int:
    """Deliver all changes in one batch; returns their number."""
    table = TargetTable(TABLE, "bench", 1, mode=Mode.APPEND)
    (schema,) = load.tables
    sink.begin(table, schema)
    files = tuple(sorted(taken.files, key=lambda f: f.first_sequence))
    after, last = files[0].first_sequence - 1, files[-1].last_sequence
    plan = FoldPlan(files[0].schema, files, after, 0, last, "", mode=Mode.APPEND)
    lanes = lanes_of(plan, [f.counts for f in files])
    sink.deliver(table, ChangeBatch(BatchKind.CHANGES, plan.schema, after, last, lanes))
    return sum((f.counts for f in files), start=OpCounts()).rows
