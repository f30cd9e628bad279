"""The numbers of what an irreversible action affects, shown before a person confirms it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, Sum

from replicators.models import Replicator
from runners.models import Event, Progress, Table


@dataclass(frozen=True, slots=True)
class Stake:
    """Rows of first copies, changes merged since, rows quarantined; how long a table's last copy
    took; the change log's size. None: not known."""

    rows: int = 0
    changes: int = 0
    quarantined: int = 0
    copy_seconds: float | None = None
    log_bytes: int | None = None


def table_stake(row: Table) -> Stake:
    """What is at stake for one table."""
    changes = row.inserts + row.updates + row.deletes
    return Stake(row.rows_snapshotted, changes, row.rows_quarantined, _copy_seconds(row))


def _copy_seconds(row: Table) -> float | None:
    mine = Event.objects.filter(
        replicator=row.replicator_id, schema_name=row.schema_name, table_name=row.name
    ).order_by("-pk")
    done = mine.filter(kind="table_snapshot_done").first()
    if done is None:
        return None
    begun = mine.filter(kind="table_snapshot_started", pk__lt=done.pk).first()
    return None if begun is None else (done.at - begun.at).total_seconds()


def replicator_stake(replicator: Replicator) -> Stake:
    """What is at stake for all tables of a replicator."""
    sums = (
        Table.objects.shown()
        .filter(replicator=replicator)
        .aggregate(
            rows=Sum("rows_snapshotted", default=0),
            changes=Sum(F("inserts") + F("updates") + F("deletes"), default=0),
            quarantined=Sum("rows_quarantined", default=0),
        )
    )
    progress = Progress.objects.filter(replicator=replicator).first()
    return Stake(**sums, log_bytes=progress.facts.get("log_bytes") if progress else None)
