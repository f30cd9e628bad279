"""Deletes expired rows of the program's own database: activity, ended runs and verifications,
sessions, idempotency keys. It works in portions, so that nobody waits for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from replicators.api import idempotency
from runners.models import Event, Run
from runners.states import RUN_ACTIVE, VerificationState
from runners.verifications import DifferingRow, Verification

PORTION = 5_000


def prune_activity(now: datetime | None = None) -> int:
    """Drop a portion of the expired rows; returns the number of rows. Two kinds of rows stay:
    events that outlive their replicator (they name statements still to run at its source), and each
    replicator's last run, which shows that it has run."""
    now = now or timezone.now()
    limit = now - timedelta(seconds=settings.ACTIVITY_SECONDS)
    later = Run.objects.filter(
        replicator=OuterRef("replicator"), created_at__gt=OuterRef("created_at")
    )
    ended = Run.objects.exclude(state__in=[str(s) for s in RUN_ACTIVE]).filter(Exists(later))
    return (
        drop_portion(Event.objects.filter(at__lt=limit).exclude(replicator=None))
        + drop_portion(ended.filter(ended_at__lt=limit))
        + drop_portion(Session.objects.filter(expire_date__lt=now))
        + drop_portion(idempotency.expired(now))
    )


def prune_verifications(now: datetime | None = None) -> int:
    """Drop a portion of the expired verifications with their rows; returns the number of rows. The
    last one of each replicator stays, and the last one that compared to the end."""
    now = now or timezone.now()
    limit = now - timedelta(seconds=settings.VERIFICATION_SECONDS)
    later = Verification.objects.filter(
        replicator=OuterRef("replicator"), created_at__gt=OuterRef("created_at")
    )
    done = later.filter(state=VerificationState.DONE)
    expired = Verification.objects.filter(ended_at__lt=limit)
    expired = expired.filter(Exists(later)).filter(~Q(state=VerificationState.DONE) | Exists(done))
    return drop_portion(
        DifferingRow.objects.filter(table__verification__in=expired)
    ) or drop_portion(expired)


def drop_portion(found: QuerySet[Any], size: int = PORTION) -> int:
    """Delete at most `size` of these rows in a transaction of their own; returns the number
    deleted."""
    portion = list(found.order_by().values_list("pk", flat=True)[:size])
    return int(found.model._default_manager.filter(pk__in=portion).delete()[0]) if portion else 0
