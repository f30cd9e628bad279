"""Pauses replicators whose owner may not change them any more, where their options say so."""

from __future__ import annotations

from django.db import transaction

from replicators.models import DesiredState, Replicator
from replicators.permissions import can_change
from runners.events.write import event_add
from runners.services import replicator_hold


def guard_owners() -> None:
    """One pass. Nothing is done for a replicator without an owner, such as one that a command
    made."""
    wanted = Replicator.objects.live().filter(
        desired_state=DesiredState.RUNNING, options__owner_gone="stop"
    )
    for row in wanted.exclude(created_by=None).select_related("created_by"):
        if row.created_by is not None and not can_change(row.created_by, row):
            _pause(row, row.created_by.get_username())


@transaction.atomic
def _pause(row: Replicator, owner: str) -> None:
    if replicator_hold(row, "owner"):
        event_add("replicator_owner_gone", replicator=row, facts={"owner": owner})
