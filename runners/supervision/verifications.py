"""Starts, watches and ends the processes of verifications: short, idempotent, and safe to run twice
at once. Nothing waits here for a process: each pass looks once."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from runners.engine.processes import HOSTNAME, Adopted, Process, Spawn, spawn_command, started_at
from runners.events.write import event_add
from runners.models import Sign, Table
from runners.states import VerificationState
from runners.transitions import IllegalTransition, verification_transition
from runners.verifications import Verification, VerifySchedule
from runners.verifying.schedule import next_time
from runners.verifying.services import verification_start

logger = logging.getLogger(__name__)

START_LEASE = timedelta(seconds=90)
LEASE_MARGIN = timedelta(seconds=10)
CANCEL_GRACE = timedelta(seconds=60)
LIMIT = 50
SIGN = "verifications"
Adopt = Callable[[int, float | None], Process]


def default_spawn() -> Spawn:
    """Starts real processes of verifications."""
    program = (sys.executable, str(settings.BASE_DIR / "manage.py"), "verify_replicator")
    return spawn_command(settings.BASE_DIR, settings.RUN_LOG_DIR, program)


def reconcile_verifications(
    now: datetime | None = None, *, spawn: Spawn | None = None, adopt: Adopt = Adopted
) -> None:
    """One pass: end verifications whose process is gone or late, ask for those that the schedules
    want, start those that wait while slots are free."""
    now = now or timezone.now()
    _shorten(now)
    with_process = Verification.objects.active().exclude(lease="")
    for row in with_process.select_related("replicator")[:LIMIT]:
        try:
            _look_after(row, now, adopt)
        except Exception:  # one that can't be ended must not keep the others waiting
            logger.exception("Verification %s could not be looked after.", row.pk)
    _schedule(now)
    _verify_taken_over()
    _start(now, spawn or default_spawn())


def _shorten(now: datetime) -> None:
    """Shorten a lease that is longer than any lease can be: the clock was set back since. A live
    process renews its lease within seconds."""
    longest = max(timedelta(seconds=settings.RUNNER.lease_seconds), START_LEASE)
    Verification.objects.active().filter(lease_until__gt=now + longest + LEASE_MARGIN).update(
        lease_until=now + longest
    )


def _look_after(row: Verification, now: datetime, adopt: Adopt) -> None:
    is_here = bool(row.pid) and row.hostname == HOSTNAME
    process = adopt(row.pid or 0, row.pid_started_at) if is_here else None
    if process is not None and process.poll() is not None:
        if process.end():
            _end(row)
    elif row.replicator.deleting_since is not None and not row.is_cancel_asked:
        Verification.objects.filter(pk=row.pk).update(is_cancel_asked=True, cancel_asked_at=now)
    elif _is_late(row, now) and (process is None or process.end()):
        _end(row)


def _is_late(row: Verification, now: datetime) -> bool:
    """Whether its lease has run out, or it did not stop in time after somebody asked for it."""
    if (row.lease_until or now) + LEASE_MARGIN < now:
        return True
    return row.is_cancel_asked and (row.cancel_asked_at or now) + CANCEL_GRACE < now


def _end(row: Verification) -> None:
    """Record the end of one whose process ended without a word."""
    row.refresh_from_db()
    try:
        if row.is_cancel_asked:
            verification_transition(
                verification=row, event="verification_cancelled", actor=row.cancelled_by
            )
        else:
            verification_transition(
                verification=row, event="verification_failed", code="verify:lost"
            )
    except IllegalTransition:
        logger.info("Verification %s had ended already.", row.pk)


@transaction.atomic
def _schedule(now: datetime) -> None:
    """Ask for verifications whose time has come. A time that passed while nothing ran counts once;
    one that can't begin now waits for the next time."""
    due = VerifySchedule.objects.select_for_update(no_key=True).filter(next_at__lte=now)
    for row in due.exclude(cron="").select_related("replicator")[:LIMIT]:
        try:
            row.next_at = next_time(row.cron, now)
        except InvalidConfig:
            row.next_at = None
        row.save(update_fields=["next_at"])
        try:
            with transaction.atomic():
                verification_start(
                    replicator=row.replicator,
                    rows_per_second=row.rows_per_second,
                    is_scheduled=True,
                    actor=None,
                )
        except (IllegalTransition, Table.DoesNotExist) as err:
            reason = err.message if isinstance(err, IllegalTransition) else ""
            event_add("verification_skipped", replicator=row.replicator, facts={"reason": reason})


def _verify_taken_over() -> None:
    """Ask once for a verification of each replicator that took its tables over, as soon as all of
    them follow their changes: nobody copied their rows, so nobody knows yet whether they are
    right."""
    fresh = Replicator.objects.filter(
        options__first_copy="take_over", deleting_since=None, verifications=None
    )
    waiting = Table.objects.shown().filter(replicator=OuterRef("pk"), is_snapshot_done=False)
    some = Table.objects.shown().filter(replicator=OuterRef("pk"))
    for row in fresh.filter(~Exists(waiting), Exists(some))[:LIMIT]:
        try:
            with transaction.atomic():
                verification_start(replicator=row, is_scheduled=True, actor=None)
        except (IllegalTransition, Table.DoesNotExist):
            logger.info("Replicator %s can't be verified yet.", row.pk)


def _start(now: datetime, spawn: Spawn) -> None:
    """Start waiting verifications, oldest first, while slots are free."""
    for row in _claimed(now):
        try:
            process = spawn(str(row.pk), row.lease)
        except OSError as err:
            logger.exception("Verification %s could not be started.", row.pk)
            verification_transition(
                verification=row,
                event="verification_failed",
                code="internal:unexpected",
                facts={"name_of_error": type(err).__name__},
            )
            continue
        mine = Verification.objects.active().filter(pk=row.pk, lease=row.lease, pid=None)
        mine.update(pid=process.pid, pid_started_at=started_at(process.pid))


@transaction.atomic
def _claimed(now: datetime) -> list[Verification]:
    """Give a lease to each verification that may start now."""
    Sign.objects.get_or_create(name=SIGN, defaults={"at": now})
    Sign.objects.select_for_update(no_key=True).get(name=SIGN)
    active = Verification.objects.active()
    free = settings.MAX_VERIFICATIONS - active.exclude(lease="").count()
    waiting = active.filter(
        state=VerificationState.WAITING, lease="", is_cancel_asked=False
    ).order_by("created_at")
    found = list(waiting[: max(0, free)])
    for row in found:
        row.lease, row.lease_until, row.hostname = uuid.uuid4().hex, now + START_LEASE, HOSTNAME
        row.save(update_fields=["lease", "lease_until", "hostname"])
    return found
