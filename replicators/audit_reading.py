"""Reads the audit trail: filtered, by cursor in both directions. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Max, Q
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from replicators.audit import AuditEntry, AuditQuerySet

ACTIONS = (
    "audit_pruned", "connection_tested",
    "draft_changed", "draft_deleted", "draft_deployed", "draft_made",
    "group_changed", "group_deleted", "group_made",
    "password_changed",
    "replicator_changed", "replicator_delete_asked", "replicator_deleted",
    "replicator_handed_over", "replicator_made",
    "replicator_paused",
    "repair_asked",
    "replicator_resumed", "replicator_retry_asked", "replicator_started", "secret_asked",
    "sign_in_failed", "signed_in", "signed_out",
    "subscriber_registered", "subscriber_removed",
    "table_add_asked", "table_change_asked", "table_ignored", "table_mode_asked",
    "table_remove_asked",
    "table_replay_asked", "table_resync_asked", "table_retry_asked", "table_rewind_asked",
    "token_expired", "token_made", "token_revoked",
    "user_changed", "user_deleted", "user_made",
    "verification_asked", "verification_cancel_asked", "verify_schedule_changed",
)  # fmt: skip
KINDS = ("audit", "connection", "draft", "group", "replicator", "token", "user")
SETTLED = timedelta(seconds=30)
"""PostgreSQL gives out keys before their transactions end, so a row may appear after one with a
greater key. A reader by cursor waits this long; no transaction of an action lasts longer."""


def action_label(act: str) -> str:
    """The name of an action on pages."""
    words = act.replace("_asked", " requested").replace("resync", "re-sync").replace("_", " ")
    return words.capitalize()


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters of a question to the trail. An empty filter does not filter. `object` is an
    object's id, or a part of its name."""

    actor: str = ""
    act: str = ""
    kind: str = ""
    object: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """The filters in a query string. Values that make no sense are left out."""
        words = {n: query.get(n, "").strip()[:200] for n in ("actor", "act", "kind", "object")}
        since, until = moment(query.get("since", "")), moment(query.get("until", ""), is_end=True)
        return cls(**words, since=since, until=until)


def moment(text: str, *, is_end: bool = False) -> datetime | None:
    """A day or a time in UTC. A day given as an end includes the whole day. None where the text is
    neither."""
    try:
        day, found = parse_date(text.strip()), parse_datetime(text.strip())
    except ValueError:
        return None
    if day is not None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=int(is_end))
    if found is None:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def entries(asked: Asked) -> AuditQuerySet:
    """The rows that match, newest first."""
    equal: dict[str, Any] = {
        "actor": asked.actor,
        "act": asked.act,
        "object_kind": asked.kind,
        "at__gte": asked.since,
        "at__lt": asked.until,
    }
    found = AuditEntry.objects.filter(**{k: v for k, v in equal.items() if v})
    if asked.object:
        found = found.filter(Q(object_id=asked.object) | Q(object_name__icontains=asked.object))
    return found


def entries_before(asked: Asked, before: int, limit: int) -> list[AuditEntry]:
    """The newest rows with smaller keys than `before` (0: of all), newest first."""
    found = entries(asked)
    return list(found.filter(id__lt=before)[:limit] if before else found[:limit])


def entries_after(asked: Asked, after: int, limit: int) -> list[AuditEntry]:
    """The oldest rows with greater keys than `after`, oldest first. Whoever continues from the last
    of them misses none."""
    found = entries(asked).filter(id__gt=after).order_by("id")
    if connection.vendor == "postgresql":
        found = found.filter(at__lt=timezone.now() - SETTLED)
    return list(found[:limit])


def last_key() -> int:
    """The greatest key; 0 where there is no row."""
    return int(AuditEntry.objects.aggregate(last=Max("id"))["last"] or 0)
