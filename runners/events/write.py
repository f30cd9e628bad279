"""Writes event rows, inside the transaction of the change that each event describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from replicators import audit
from replicators.connectors.model.schema import TableId
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
    """Write one event row."""
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


def act_add(
    kind: str,
    *,
    replicator: Replicator,
    actor: AbstractBaseUser | None,
    table: TableId | None = None,
    facts: dict[str, Any] | None = None,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
) -> None:
    """Write an event of a person's action and a row of the audit trail, which outlives the
    replicator. The audit row has `facts`, and `old` and `new` values where something changed."""
    name = actor.get_username() if actor is not None else ""
    event_add(kind, replicator=replicator, table=table, actor=name, facts=facts)
    reported = {"table": str(table)} if table else {}
    audit.record(
        kind,
        audit.Thing.of(replicator),
        actor=actor,
        old=old,
        new={**reported, **(facts or {}), **(new or {})},
    )
