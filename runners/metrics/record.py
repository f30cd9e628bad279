"""Metrics of tables, and of each replicator as a whole, over time: samples of every 10 s are kept
for an hour, samples of every minute for 7 days."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from statistics import median

from django.utils import timezone

from replicators.models import Replicator
from runners.models import ReplicatorMetric, Table, TableMetric
from runners.states import TableState
from runners.supervision.retention import drop_portion

PRUNE_SECONDS = 30.0
RESOLUTIONS = {10: timedelta(hours=1), 60: timedelta(days=7)}


def _moment(now: datetime, resolution: int) -> datetime:
    return datetime.fromtimestamp(now.timestamp() // resolution * resolution, UTC)


def span_of(now: datetime) -> datetime:
    """When the shortest span began that has rows of its own. They are there once it was
    recorded."""
    return _moment(now, min(RESOLUTIONS))


def record_metrics(replicator: Replicator, now: datetime | None = None) -> None:
    """Write one row per table and resolution, and one for their sum, once for each moment;
    idempotent within the moment."""
    now = now or timezone.now()
    due = {
        resolution: at
        for resolution in RESOLUTIONS
        if not ReplicatorMetric.objects.filter(
            replicator=replicator,
            resolution_seconds=resolution,
            at=(at := _moment(now, resolution)),
        ).exists()
    }
    if not due:
        return
    tables = list(Table.objects.filter(replicator=replicator).defer("schema"))
    TableMetric.objects.bulk_create(
        [_metric(table, at, resolution) for resolution, at in due.items() for table in tables],
        ignore_conflicts=True,
    )
    kept = [t for t in tables if t.is_chosen and t.state != TableState.REMOVED]
    ReplicatorMetric.objects.bulk_create(
        [_sum(replicator, kept, at, resolution) for resolution, at in due.items()],
        ignore_conflicts=True,
    )


def _sum(
    replicator: Replicator, tables: list[Table], at: datetime, resolution: int
) -> ReplicatorMetric:
    lags = [t.lag_seconds for t in tables if t.lag_seconds is not None]
    return ReplicatorMetric(
        replicator=replicator,
        at=at,
        resolution_seconds=resolution,
        lag_worst_seconds=max(lags, default=None),
        lag_median_seconds=median(lags) if lags else None,
        changes=sum(t.inserts + t.updates + t.deletes for t in tables),
        rows_snapshotted=sum(t.rows_snapshotted for t in tables),
    )


def _metric(table: Table, at: datetime, resolution: int) -> TableMetric:
    return TableMetric(
        table=table,
        at=at,
        resolution_seconds=resolution,
        lag_seconds=table.lag_seconds,
        inserts=table.inserts,
        updates=table.updates,
        deletes=table.deletes,
        rows_snapshotted=table.rows_snapshotted,
        backlog_bytes=table.backlog_bytes,
    )


def prune_metrics(now: datetime | None = None) -> int:
    """Drop expired rows in portions, for `PRUNE_SECONDS` at most; returns their number. The next
    call drops the rest."""
    now, dropped = now or timezone.now(), 0
    end = time.monotonic() + PRUNE_SECONDS
    for model in (TableMetric, ReplicatorMetric):
        for resolution, kept in RESOLUTIONS.items():
            old = model.objects.filter(resolution_seconds=resolution, at__lt=now - kept)
            while (count := drop_portion(old)) and time.monotonic() < end:
                dropped += count
            dropped += count
    return dropped
