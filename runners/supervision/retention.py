"""Deletes expired rows of the program's own database: activity, ended runs, sessions, idempotency
keys. It works in portions, so that nobody waits for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from replicators.api import idempotency
from runners.models import Event, Run
from runners.states import RUN_ACTIVE

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


def drop_portion(found: QuerySet[Any], size: int = PORTION) -> int:
    """Delete at most `size` of these rows in a transaction of their own; returns the number
    deleted."""
    portion = list(found.order_by().values_list("pk", flat=True)[:size])
    return int(found.model._default_manager.filter(pk__in=portion).delete()[0]) if portion else 0
