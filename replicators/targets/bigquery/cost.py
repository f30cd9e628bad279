"""What a merge uses of Google's quotas and of the bill. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.budgets import Budget
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import FoldedBatch, MergeCost
from replicators.targets.bigquery import layout

BUDGET = Budget(a_table=1500, in_all=100_000, noun="load jobs")
"""Load jobs of a table and of a project within any 24 hours. Failed ones count, and nobody can
raise these limits: https://cloud.google.com/bigquery/quotas#load_jobs."""


@dataclass(slots=True)
class Used:
    """What the jobs of one piece of work used so far: load jobs, each attempt counted, and the
    bytes that queries read."""

    loads: int = 0
    bytes_read: int = 0


def is_pruned(batch: FoldedBatch) -> bool:
    """Whether the MERGE may leave out blocks of the table: it is clustered by its key, and the
    batch has ranges of it. `batch` has BigQuery's column names. Rows that are only added, and a
    table that is emptied, need no look at all."""
    if batch.append_only or batch.mode is Mode.APPEND or batch.truncate or not batch.rows:
        return True
    return bool(batch.ranges or batch.keys) and bool(layout.clustered(batch.schema))


def cost_of(used: Used, batch: FoldedBatch) -> MergeCost:
    """The merge's cost. An emulator reports no bytes."""
    return MergeCost(used.loads, used.bytes_read or None, is_pruned(batch))
