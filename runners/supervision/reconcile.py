"""Starts, stops and cleans up runs until they match the desired states: short, idempotent, and safe
to run twice at once."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from replicators.models import DesiredState, Replicator
from runners.engine.processes import HOSTNAME, Adopted
from runners.events.write import event_add
from runners.models import Run, Sign
from runners.services import run_ask_stop
from runners.supervision.backoff import LAST_SECONDS
from runners.supervision.capacity import run_waits
from runners.supervision.dispatch import send
from runners.supervision.guard import guard_retention
from runners.supervision.owners import guard_owners
from runners.supervision.supervisor import LEASE_MARGIN, START_LEASE, run_lose, unwatched
from runners.transitions import IllegalTransition, run_transition

logger = logging.getLogger(__name__)

LIMIT = 50
MESSAGE_SECONDS = 20.0
SIGN = "reconcile"


def reconcile_runs(now: datetime | None = None) -> None:
    """One pass: end lost runs, have the others watched, stop unwanted runs, start wanted ones."""
    now = now or timezone.now()
    Sign.objects.update_or_create(name=SIGN, defaults={"at": now})
    guard_retention(now)
    guard_owners()
    _stop_unwanted()
    _watch(now)
    _start(now)
    _drop(now)


def _stop_unwanted() -> None:
    unwanted = ~Q(replicator__desired_state=DesiredState.RUNNING) | ~Q(
        replicator__deleting_since=None
    )
    for run in Run.objects.active().filter(unwanted, is_stop_asked=False)[:LIMIT]:
        run_ask_stop(run=run, origin="user")


def _watch(now: datetime) -> None:
    """Give a worker each run that nobody watches. A run whose lease has expired too is lost."""
    _shorten(now)
    for run in Run.objects.active().filter(unwatched(now)).select_related("replicator")[:LIMIT]:
        try:
            _look_after(run, now)
        except (
            Exception
        ):  # a run that can't be ended must not keep the others from being looked after
            logger.exception("Run %s could not be looked after.", run.pk)


def _look_after(run: Run, now: datetime) -> None:
    if not run.lease and run.is_stop_asked:
        _end_unstarted(run)
    elif run.lease and run.lease_until and run.lease_until + LEASE_MARGIN < now:
        _end_lost(run, now)
    else:
        send("supervise_run", str(run.pk), expires=MESSAGE_SECONDS)


def _shorten(now: datetime) -> None:
    """Shorten a lease that is longer than any lease can be: the clock was set back since. A live
    run renews its lease within seconds."""
    longest = max(timedelta(seconds=settings.RUNNER.lease_seconds), START_LEASE)
    Run.objects.active().filter(lease_until__gt=now + longest + LEASE_MARGIN).update(
        lease_until=now + longest
    )


def _end_unstarted(run: Run) -> None:
    try:
        with transaction.atomic():
            unheld = Run.objects.active().filter(pk=run.pk, lease="")
            if unheld.select_for_update(no_key=True).exists():
                run_transition(run=run, event="run_stopped")
    except IllegalTransition:
        logger.info("Run %s had ended already.", run.pk)


def _end_lost(run: Run, now: datetime) -> None:
    """End a lost run. Its own watchdog has ended it by now; what is left on this machine is killed
    first."""
    if run.pid and run.hostname == HOSTNAME and not Adopted(run.pid, run.pid_started_at).end():
        return
    run_lose(run=run, code="run:lost", facts={}, event="run_lost", now=now)


def _is_due(now: datetime) -> Q:
    """Replicators that do not wait for their next retry. A time further away than any wait was set
    before the clock was set back, so it does not count."""
    is_impossible = Q(progress__retry_at__gt=now + timedelta(seconds=LAST_SECONDS))
    no_wait = Q(progress=None) | Q(progress__retry_at=None)
    return no_wait | Q(progress__retry_at__lte=now) | is_impossible


@transaction.atomic
def _start(now: datetime) -> None:
    """Create a run for every replicator that should run and has none, while slots are free."""
    Sign.objects.select_for_update(no_key=True).get(name=SIGN)
    free = settings.MAX_RUNS - Run.objects.active().count()
    wanted = (
        Replicator.objects.live()
        .filter(_is_due(now), desired_state=DesiredState.RUNNING)
        .exclude(progress__is_given_up=True)
        .exclude(pk__in=Run.objects.active().values("replicator"))
        .order_by("updated_at")
    )
    count = max(0, min(free, LIMIT))
    found = list(wanted[: count + LIMIT])
    for replicator in found[:count]:
        _create(replicator)
    if count < LIMIT:
        run_waits(found[count:])


def _create(replicator: Replicator) -> None:
    try:
        with transaction.atomic():
            run = Run.objects.create(replicator=replicator)
            event_add("run_created", replicator=replicator, run=run)
    except IntegrityError:
        return
    pk = str(run.pk)
    transaction.on_commit(lambda: send("supervise_run", pk, expires=MESSAGE_SECONDS))


def _drop(now: datetime) -> None:
    gone = (
        Replicator.objects.filter(_is_due(now))
        .exclude(deleting_since=None)
        .exclude(pk__in=Run.objects.active().values("replicator"))
    )
    for pk in gone.values_list("pk", flat=True)[:LIMIT]:
        send("drop_replicator", str(pk), expires=MESSAGE_SECONDS)
