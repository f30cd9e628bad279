"""The act of a person who does not wait for a replicator's next try, or has mended what it failed for."""

from __future__ import annotations

from django.db import transaction

from replicators.models import DesiredState, Replicator
from runners.models import Run
from runners.services import Actor, IllegalTransition, progress_of, run_from_now

EVENT = "replicator_retry_asked"


@transaction.atomic
def replicator_retry(*, replicator: Replicator, actor: Actor) -> Replicator:
    """Try it again now; does not wait. IllegalTransition where it neither waits for its next try nor has failed."""
    row, progress = Replicator.objects.get(pk=replicator.pk), progress_of(replicator)
    is_wanted = row.desired_state == DesiredState.RUNNING and row.deleting_since is None
    has_failed = progress.is_given_up or progress.retry_at is not None
    if not is_wanted or not has_failed or Run.objects.active().filter(replicator=row).exists():
        text = "There is nothing to retry: it neither waits for its next try nor has failed."
        raise IllegalTransition(row.desired_state, EVENT, message=text)
    return run_from_now(replicator, actor, EVENT)
