"""Watermarks as rows: published, pruned, and read by pages and REST. When to publish is decided
elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from runners.engine.store.watermarks import Watermark as Published
from runners.engine.store.watermarks import most_kept
from runners.models import Watermark


def _pairs(found: dict[TableId, str]) -> list[list[str]]:
    return [[t.schema, t.name, word] for t, word in sorted(found.items(), key=lambda x: str(x[0]))]


def watermark_publish(replicator: Replicator, watermark: Published) -> Watermark:
    """Publish one watermark as a row, and delete expired and surplus rows. Called within the
    writer's transaction."""
    made = Watermark.objects.create(
        replicator=replicator,
        sequence=watermark.sequence,
        position=watermark.position.to_json(),
        committed_at=datetime.fromtimestamp(watermark.committed_at, UTC),
        readable_until=datetime.fromtimestamp(watermark.readable_until, UTC),
        versions=_pairs(watermark.versions),
        left_out=_pairs(watermark.left_out),
    )
    older = Watermark.objects.filter(replicator=replicator, pk__lt=made.pk)
    older.filter(readable_until__lt=timezone.now()).delete()
    most = most_kept(len(watermark.versions) + len(watermark.left_out))
    beyond = older.values_list("pk", flat=True)[most - 1 : most].first()
    if beyond is not None:
        older.filter(pk__lte=beyond).delete()
    return made


def versions_forget(replicator: Replicator, table: TableId) -> None:
    """Mark a table as dropped in the rows that name it: the target's table is gone."""
    name = [table.schema, table.name]
    for row in Watermark.objects.filter(replicator=replicator):
        kept = [v for v in row.versions if v[:2] != name]
        if len(kept) < len(row.versions):
            left_out = [*row.left_out, [*name, "dropped"]]
            Watermark.objects.filter(pk=row.pk).update(versions=kept, left_out=left_out)


def watermark_last(replicator: Replicator) -> Watermark | None:
    """The newest watermark."""
    return Watermark.objects.filter(replicator=replicator).first()


def watermarks_shown(replicator: Replicator, *, limit: int) -> list[dict[str, Any]]:
    """The last watermarks, newest first, in the form of REST."""
    return [_reported(row) for row in Watermark.objects.filter(replicator=replicator)[:limit]]


def _reported(row: Watermark) -> dict[str, Any]:
    return {
        "sequence": row.sequence,
        "position": Position.from_json(row.position).ordinal,
        "committed_at": row.committed_at,
        "published_at": row.published_at,
        "readable_until": row.readable_until,
        "tables": [{"schema": s, "table": t, "version": v} for s, t, v in row.versions],
        "left_out": [{"schema": s, "table": t, "reason": w} for s, t, w in row.left_out],
    }


def consistent_at(replicator: Replicator) -> dict[str, Any] | None:
    """The newest watermark's moment, in the form of the status answer; None before the first."""
    last = Watermark.objects.filter(replicator=replicator).defer("versions").first()
    if last is None:
        return None
    return {
        "committed_at": last.committed_at,
        "position": Position.from_json(last.position).ordinal,
        "sequence": last.sequence,
        "published_at": last.published_at,
    }
