"""Connections of existing replicators that a draft can use again, secrets included. Writes
nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from replicators.connectors.params import cleared
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.permissions import can_edit
from replicators.selectors import plugins
from replicators.services import params_of

SHOWN = 50
_PLACES = ("host", "database", "warehouse")


@dataclass(frozen=True, slots=True)
class Known:
    """A connection that can be used again: the replicator that has it, and a short text on where it
    leads."""

    pk: str
    name: str
    place: str


def known(role: str, user: User) -> list[Known]:
    """The connections of that role that this user may take, by name. Each is listed once, and only
    if its connector may be chosen."""
    kinds = [p.name for p in plugins(role)]
    rows = Replicator.objects.live().filter(**{f"{role}_kind__in": kinds}).order_by("name")
    if not can_edit(user):
        rows = rows.filter(created_by=user)
    found: dict[str, Known] = {}
    for row in rows[:SHOWN]:
        try:
            values = params_of(row, role)
        except ReplicationError:  # its secrets can't be read any more, so it can't be used again
            continue
        place = " / ".join(str(cleared(values[p])) for p in _PLACES if values.get(p))
        same = json.dumps([getattr(row, f"{role}_kind"), values], sort_keys=True)
        found.setdefault(same, Known(str(row.pk), row.name, place))
    return list(found.values())


def taken(role: str, pk: str, user: User) -> tuple[str, dict[str, Any]] | None:
    """The replicator's name, and the draft's fields that give the draft its connection; None if
    there is no such replicator."""
    if pk not in {k.pk for k in known(role, user)}:
        return None
    row = Replicator.objects.get(pk=pk)
    kind = getattr(row, f"{role}_kind")
    return row.name, {f"{role}_kind": kind, f"{role}_params": params_of(row, role)}
