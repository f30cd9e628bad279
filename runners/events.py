"""Writes event rows; called inside the transaction of the change they tell of."""

from __future__ import annotations

from typing import Any

from replicators.connectors.schema import TableId
from replicators.models import Replicator
from runners.models import Event, Run


def event_add(
    kind: str,
    *,
    replicator: Replicator | None,
    run: Run | None = None,
    table: TableId | None = None,
    actor: str = "",
    code: str = "",
    facts: dict[str, Any] | None = None,
) -> Event:
    """One event row."""
    return Event.objects.create(
        replicator=replicator,
        run=run,
        schema_name=table.schema if table else "",
        table_name=table.name if table else "",
        kind=kind,
        actor=actor[:150],
        code=code,
        facts=facts or {},
    )
