"""Pauses other replicators of a source while one of them is about to lose the source's log, where
that one's options say so. Each is resumed by itself."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from replicators.config import source_plugin
from replicators.connectors.problems.errors import ReplicationError
from replicators.invalid import InvalidConfig
from replicators.models import DesiredState, Replicator
from replicators.services import source_of
from runners.events.write import event_add
from runners.metrics.retention import retention_of
from runners.models import Progress, Run
from runners.services import replicator_hold
from runners.states import RunState
from runners.supervision.dispatch import nudge

logger = logging.getLogger(__name__)

FRESH = timedelta(seconds=60)
ACTS = ("pause", "drop")
SPARE = 2.0
"""A replicator is paused only while its own log lasts for so many times the hours at which it
would be marked itself."""


def guard_retention(now: datetime) -> None:
    """One pass: resume what was paused long enough, or for a replicator that is well again, then
    pause what stands in the way of one whose log runs out."""
    short = _short(now)
    _resume(set(short), now)
    for replicator in short.values():
        if retention_of({}, replicator.options).action in ACTS:
            _pause_others(replicator, set(short), now)


def _measured(now: datetime) -> list[Progress]:
    """The progress of replicators whose run measured a moment ago."""
    runs = Run.objects.filter(state=RunState.RUNNING).values("replicator")
    rows = Progress.objects.filter(replicator__in=runs, facts_at__gte=now - FRESH)
    wanted = rows.filter(
        replicator__desired_state=DesiredState.RUNNING, replicator__deleting_since=None
    )
    return list(wanted.select_related("replicator"))


def _short(now: datetime) -> dict[str, Replicator]:
    """The replicators whose source keeps its log for too few hours, by id."""
    return {
        str(row.replicator_id): row.replicator
        for row in _measured(now)
        if retention_of(row.facts, row.replicator.options).is_source_short
    }


def places_of(replicator: Replicator) -> frozenset[tuple[str, int]]:
    """The hosts and ports of its source; nothing where it has none, or can't be read."""
    try:
        found = source_plugin(replicator.source_kind).places(source_of(replicator))
        return frozenset((p.value, p.port) for p in found if p.kind == "host")
    except (ReplicationError, InvalidConfig):
        return frozenset()


def _pause_others(short: Replicator, shorts: set[str], now: datetime) -> None:
    places = places_of(short)
    for row in _measured(now):
        other = row.replicator
        if str(other.pk) in shorts or other.source_kind != short.source_kind or row.paused_for:
            continue
        left = retention_of(row.facts, other.options)
        hours = left.source_hours_left
        if hours is not None and hours < SPARE * left.warn_hours:
            continue
        if places & places_of(other):
            most = retention_of({}, short.options).warn_hours
            most = most if hours is None else min(most, (hours - left.warn_hours) / 2)
            _pause(other, short, now + timedelta(hours=most))


@transaction.atomic
def _pause(other: Replicator, short: Replicator, until: datetime) -> None:
    if not replicator_hold(other, "retention"):
        return
    noted = {"replicator": str(short.pk), "name": short.name, "until": until.isoformat()}
    Progress.objects.filter(replicator=other).update(paused_for=noted)
    event_add("replicator_paused_for", replicator=other, facts={"name": short.name})
    event_add("retention_others_paused", replicator=short, facts={"name": other.name})


def _resume(short: set[str], now: datetime) -> None:
    """End what is over. One that a person started meanwhile is not paused again for the same
    replicator until that one was well."""
    rows = Progress.objects.exclude(paused_for=None).select_related("replicator")
    for row in rows.filter(replicator__deleting_since=None):
        noted: dict[str, Any] = row.paused_for or {}
        is_paused = row.replicator.desired_state == DesiredState.PAUSED
        is_well = noted.get("replicator") not in short
        is_late = datetime.fromisoformat(noted["until"]) <= now
        if is_paused and not noted.get("is_over") and (is_well or is_late):
            _run_again(row, noted)
        if is_well:
            Progress.objects.filter(pk=row.pk).update(paused_for=None)
        elif not is_paused or is_late:
            Progress.objects.filter(pk=row.pk).update(paused_for={**noted, "is_over": True})


@transaction.atomic
def _run_again(row: Progress, noted: dict[str, Any]) -> None:
    mine = Replicator.objects.filter(
        pk=row.replicator_id, desired_state=DesiredState.PAUSED, deleting_since=None
    )
    if mine.update(desired_state=DesiredState.RUNNING):
        event_add(
            "replicator_resumed_after",
            replicator=row.replicator,
            facts={"name": noted.get("name", "")},
        )
        nudge()
