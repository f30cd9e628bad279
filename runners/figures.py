"""Figures of tables over time: every 10 s kept an hour, every minute kept 7 days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from replicators.models import Replicator
from runners.models import Table, TableMetric

RESOLUTIONS = {10: timedelta(hours=1), 60: timedelta(days=7)}


def _moment(now: datetime, resolution: int) -> datetime:
    return datetime.fromtimestamp(now.timestamp() // resolution * resolution, UTC)


def record_metrics(replicator: Replicator, now: datetime | None = None) -> None:
    """A row per table and resolution, once for every moment; idempotent within it."""
    now = now or timezone.now()
    due = {
        resolution: at
        for resolution in RESOLUTIONS
        if not TableMetric.objects.filter(
            table__replicator=replicator,
            resolution_seconds=resolution,
            at=(at := _moment(now, resolution)),
        ).exists()
    }
    if not due:
        return
    tables = list(Table.objects.filter(replicator=replicator).defer("shape"))
    TableMetric.objects.bulk_create(
        [_metric(table, at, resolution) for resolution, at in due.items() for table in tables],
        ignore_conflicts=True,
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
    """Drop the rows past their time; how many."""
    now = now or timezone.now()
    return sum(
        TableMetric.objects.filter(resolution_seconds=resolution, at__lt=now - kept).delete()[0]
        for resolution, kept in RESOLUTIONS.items()
    )
