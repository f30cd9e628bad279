"""Pauses replicators whose owner may not edit any more, where their options say so."""

from __future__ import annotations

from django.db import transaction

from replicators.models import DesiredState, Replicator
from replicators.permissions import can_edit
from runners.events.write import event_add
from runners.models import Run
from runners.services import run_ask_stop
from runners.supervision.dispatch import nudge


def guard_owners() -> None:
    """One pass. Nothing is done for a replicator without an owner, such as one that a command
    made."""
    wanted = Replicator.objects.live().filter(
        desired_state=DesiredState.RUNNING, options__owner_gone="stop"
    )
    for row in wanted.exclude(created_by=None).select_related("created_by"):
        if row.created_by is not None and not can_edit(row.created_by):
            _pause(row, row.created_by.get_username())


@transaction.atomic
def _pause(row: Replicator, owner: str) -> None:
    mine = Replicator.objects.filter(pk=row.pk, desired_state=DesiredState.RUNNING)
    if not mine.update(desired_state=DesiredState.PAUSED):
        return
    event_add("replicator_owner_gone", replicator=row, facts={"owner": owner})
    for run in Run.objects.active().filter(replicator=row):
        run_ask_stop(run=run, origin="owner")
    nudge()
