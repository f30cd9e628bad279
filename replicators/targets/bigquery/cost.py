"""What a merge uses of Google's quotas and of the bill. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replicators.connectors.budgets import Budget
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId
from replicators.connectors.target import Accuracy, Estimate, FoldedBatch, MergeCost
from replicators.targets.bigquery import layout

BUDGET = Budget(a_table=1500, in_all=100_000, noun="load jobs")
"""Load jobs of a table and of a project within any 24 hours. Failed ones count, and nobody can
raise these limits: https://cloud.google.com/bigquery/quotas#load_jobs."""


ESTIMATE_SECONDS = 3600.0
"""How long the estimate of a table's merge is good. A dry run is free, and is one more request."""
_ACCURACY = {
    "PRECISE": Accuracy.EXACT,
    "LOWER_BOUND": Accuracy.AT_LEAST,
    "UPPER_BOUND": Accuracy.AT_MOST,
}


@dataclass(slots=True)
class Used:
    """What the jobs of one piece of work used so far: load jobs, each attempt counted, and the
    bytes that queries read. `wants_estimate`: the next script is estimated before it runs."""

    loads: int = 0
    bytes_read: int = 0
    wants_estimate: bool = False
    estimate: Estimate | None = None


def estimate_of(statistics: Mapping[str, Any]) -> Estimate | None:
    """The estimate in a dry run's `statistics.query`; None where it has none:
    https://cloud.google.com/bigquery/docs/reference/rest/v2/Job#JobStatistics2."""
    read = statistics.get("totalBytesProcessed")
    if read is None:
        return None
    accuracy = str(statistics.get("totalBytesProcessedAccuracy", ""))
    return Estimate(int(read), _ACCURACY.get(accuracy, Accuracy.UNKNOWN))


class Estimates:
    """When the merges of each table were estimated last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[TableId, float] = {}

    def is_due(self, table: TableId) -> bool:
        """Whether there is no estimate, or only an old one."""
        at = self._made.get(table)
        return at is None or self._clock() - at > ESTIMATE_SECONDS

    def made(self, table: TableId) -> None:
        """An estimate came."""
        self._made[table] = self._clock()


def is_pruned(batch: FoldedBatch) -> bool:
    """Whether the MERGE may leave out blocks of the table: it is clustered by its key, and the
    batch has ranges of it. `batch` has BigQuery's column names. Rows that are only added, and a
    table that is emptied, need no look at all."""
    if batch.append_only or batch.mode is Mode.APPEND or batch.truncate or not batch.rows:
        return True
    return bool(batch.ranges or batch.keys) and bool(layout.clustered(batch.schema))


def cost_of(used: Used, batch: FoldedBatch) -> MergeCost:
    """The merge's cost. An emulator reports no bytes."""
    return MergeCost(used.loads, used.bytes_read or None, is_pruned(batch), used.estimate)
