"""Quarantined rows as pages and REST show them."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from replicators.models import Replicator
from runners.models import QuarantinedRow, Table

QUARANTINED_SHOWN = 100


def quarantined_rows(table: Table) -> QuerySet[QuarantinedRow]:
    """The table's rows in quarantine now, oldest first."""
    return table.quarantined.filter(
        Q(freed_at=None) | Q(freed_at__gt=table.merged_sequence),
        generation=table.generation,
        sequence__lte=table.merged_sequence,
    ).defer("image")


def quarantined_page(
    replicator: Replicator, *, schema: str, name: str, after: int | None = None, limit: int
) -> tuple[Table, list[QuarantinedRow]]:
    """A table, and its quarantined rows after that sequence. Raises `Table.DoesNotExist`."""
    table = Table.objects.shown().get(replicator=replicator, schema_name=schema, name=name)
    found = quarantined_rows(table)
    if after is not None:
        found = found.filter(sequence__gt=after)
    return table, list(found[:limit])


def quarantined_json(table: Table, rows: list[QuarantinedRow]) -> dict[str, Any]:
    """The form of REST's answer."""
    return {
        "schema": table.schema_name,
        "table": table.name,
        "rows_quarantined": table.rows_quarantined,
        "is_replay_asked": table.is_replay_asked,
        "after": rows[-1].sequence if rows else None,
        "rows": [
            {
                "generation": r.generation,
                "sequence": r.sequence,
                "key": r.key,
                "reason": r.reason,
                "quarantined_at": r.at,
            }
            for r in rows
        ],
    }
