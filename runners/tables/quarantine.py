"""The rows that wait beside a target, as people see them."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from replicators.models import Replicator
from runners.models import ParkedRow, Table

PARKED_SHOWN = 100


def parked_rows(table: Table) -> QuerySet[ParkedRow]:
    """The table's rows that wait now, oldest first."""
    return table.parked.filter(
        Q(freed_at=None) | Q(freed_at__gt=table.merged_sequence),
        generation=table.generation,
        sequence__lte=table.merged_sequence,
    ).defer("image")


def parked_page(
    replicator: Replicator, *, schema: str, name: str, after: int | None = None, limit: int
) -> tuple[Table, list[ParkedRow]]:
    """A table, and its parked rows after that sequence. `Table.DoesNotExist`."""
    table = Table.objects.shown().get(replicator=replicator, schema_name=schema, name=name)
    found = parked_rows(table)
    if after is not None:
        found = found.filter(sequence__gt=after)
    return table, list(found[:limit])


def parked_json(table: Table, rows: list[ParkedRow]) -> dict[str, Any]:
    """The form of REST's answer."""
    return {
        "schema": table.schema_name,
        "table": table.name,
        "rows_parked": table.rows_parked,
        "is_replay_asked": table.is_replay_asked,
        "after": rows[-1].sequence if rows else None,
        "rows": [
            {
                "generation": r.generation,
                "sequence": r.sequence,
                "key": r.key,
                "reason": r.reason,
                "parked_at": r.at,
            }
            for r in rows
        ],
    }
