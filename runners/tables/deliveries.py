"""Deliveries as rows: recorded by a run, and read by pages and REST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max, QuerySet

from replicators.connectors.model.schema import TableId
from replicators.connectors.poll import DeliveryReport
from replicators.connectors.problems.message import Message
from replicators.connectors.problems.problem import Problem
from replicators.models import Replicator
from runners.events.write import event_add
from runners.models import Delivery, Run

KEPT = 1000
"""The most deliveries of a replicator that are kept."""


def deliveries_record(
    replicator: Replicator, reports: Sequence[DeliveryReport], run: Run | None = None
) -> None:
    """Record deliveries; the caller's transaction holds all of them. An event says that one was
    refused."""
    for report in reports:
        made, is_new = Delivery.objects.update_or_create(
            replicator=replicator,
            schema_name=report.table.schema,
            table_name=report.table.name,
            name=report.name[:500],
            mark=report.mark,
            defaults={
                "arrived_at": datetime.fromtimestamp(report.at, UTC),
                "rows": report.rows,
                "inserts": report.inserts,
                "updates": report.updates,
                "deletes": report.deletes,
                "missing": report.missing,
                "unchanged": report.unchanged,
                "quarantined": report.quarantined,
                "error_code": report.code,
                "error_facts": dict(report.facts),
            },
        )
        if is_new and made.error_code:
            event_add(
                "delivery_refused",
                replicator=replicator,
                run=run,
                table=report.table,
                code=made.error_code,
                facts=made.error_facts,
            )
    beyond = Delivery.objects.filter(replicator=replicator).values_list("pk", flat=True)
    last = beyond[KEPT : KEPT + 1].first()
    if last is not None:
        Delivery.objects.filter(replicator=replicator, pk__lte=last).delete()


def deliveries_of(replicator: Replicator) -> QuerySet[Delivery]:
    """All deliveries of a replicator, newest first."""
    return Delivery.objects.filter(replicator=replicator)


def refusal_of(row: Delivery) -> Message | None:
    """Why it was refused, in words, with what to do; None where it was not."""
    if not row.error_code:
        return None
    table = TableId(row.schema_name, row.table_name)
    facts: Mapping[str, str] = {k: str(v) for k, v in row.error_facts.items()}
    return Problem(row.error_code, table=table, facts=tuple(facts.items())).message


def last_of_tables(replicator: Replicator) -> dict[tuple[str, str], Delivery]:
    """The newest delivery of each table."""
    tables = deliveries_of(replicator).order_by().values("schema_name", "table_name")
    newest = tables.annotate(last=Max("pk")).values("last")
    rows = Delivery.objects.filter(pk__in=list(newest.values_list("last", flat=True)))
    return {(row.schema_name, row.table_name): row for row in rows}


def deliveries_shown(replicator: Replicator, *, limit: int) -> list[dict[str, Any]]:
    """The last deliveries, newest first, in the form of REST."""
    return [_reported(row) for row in deliveries_of(replicator)[:limit]]


def _reported(row: Delivery) -> dict[str, Any]:
    refusal = refusal_of(row)
    return {
        "schema": row.schema_name,
        "table": row.table_name,
        "name": row.name,
        "arrived_at": row.arrived_at,
        "recorded_at": row.recorded_at,
        "rows": row.rows,
        "inserts": row.inserts,
        "updates": row.updates,
        "deletes": row.deletes,
        "missing": row.missing,
        "unchanged": row.unchanged,
        "quarantined": row.quarantined,
        "refused": None
        if refusal is None
        else {
            "code": row.error_code,
            "title": refusal.title,
            "message": refusal.text,
            "suggestion": refusal.suggestion,
        },
    }
