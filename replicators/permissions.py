"""Who may look and who may act: members of the groups `viewer`, `feed-maker` and `editor`, and
superusers. Pages, REST and statements ask here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.urls import ResolverMatch

from replicators.connectors import registry

VIEW = "replicators.view_replicator"
EDIT = "replicators.change_replicator"
AUDIT = "replicators.view_auditentry"
TOKENS = "replicators.delete_apitoken"
"""Only superusers have these two, unless an administrator gives them to somebody."""
FEEDS = "replicators.make_feeds"
ROWS = "replicators.read_rows"
"""Editors have it too: they may copy a table to any place. So do makers of feeds, for their own."""
ONLY_FEEDS = "Your user may make feeds only: choose a target that takes every change."
NOT_YOURS = "Your user may change only feeds that it made. Ask for the group editor."
_PK = "<uuid:pk>"
_OWNED: dict[str, type[Model]] = {}


class NoRight(PermissionDenied):
    """The user may not do this. Its text says why."""


class Owned(Protocol):
    """A replicator or a draft."""

    pk: UUID
    created_by_id: int | None
    target_kind: str


def can_view(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May see replicators, their state and their logs."""
    return bool(user.has_perm(VIEW))  # type: ignore[union-attr]


def can_audit(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May read the audit trail."""
    return bool(user.has_perm(AUDIT))  # type: ignore[union-attr]


def can_revoke(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May see and revoke everybody's tokens."""
    return bool(user.has_perm(TOKENS))  # type: ignore[union-attr]


def can_edit(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May make, start, pause, change and delete every replicator and draft."""
    return bool(user.has_perm(EDIT))  # type: ignore[union-attr]


def can_make(user: AbstractBaseUser | AnonymousUser, target_kind: str = "") -> bool:
    """May make a replicator into this kind of target; without a kind: into any kind at all. May ask
    a source with given parameters."""
    if can_edit(user):
        return True
    makes_feeds = bool(user.has_perm(FEEDS))  # type: ignore[union-attr]
    return makes_feeds and (not target_kind or is_feed(target_kind))


def can_change(user: AbstractBaseUser | AnonymousUser, thing: Owned) -> bool:
    """May start, pause, change and delete this replicator or draft: an editor all of them, a maker
    of feeds its own feeds."""
    is_own = thing.created_by_id is not None and thing.created_by_id == user.pk
    return can_edit(user) or (is_own and can_make(user, thing.target_kind))


def changeable(user: AbstractBaseUser | AnonymousUser, things: Iterable[Owned]) -> set[UUID]:
    """The keys of those that the user may change."""
    return {t.pk for t in things if can_change(user, t)}


def can_write(user: AbstractBaseUser | AnonymousUser, match: ResolverMatch | None) -> bool:
    """May change what an address names: `can_change`. Where it names nothing of somebody's, or what
    is not there, `can_make`."""
    if can_edit(user):
        return True
    if not can_make(user):
        return False
    thing = _named(match)
    return thing is None or can_change(user, thing)


def can_read_rows(user: AbstractBaseUser | AnonymousUser, match: ResolverMatch | None) -> bool:
    """May read rows of copied tables, such as those of the change log."""
    if user.has_perm(ROWS) or can_edit(user):  # type: ignore[union-attr]
        return True
    return _named(match) is not None and can_write(user, match)


def require_make(user: AbstractBaseUser | None, target_kind: str) -> None:
    """`NoRight` where this person may make no such replicator. None: the machine's
    administrator."""
    if user is not None and target_kind and not can_make(user, target_kind):
        raise NoRight(ONLY_FEEDS)


def is_feed(target_kind: str) -> bool:
    """Whether a target of this kind is a feed: it takes every change."""
    plugin = registry.targets().get(target_kind)
    return plugin is not None and plugin.capabilities.takes_changes


def owned(folder: str, model: type[Model]) -> None:
    """Things of this model belong to who made them. Addresses name them as `folder/<uuid:pk>/`."""
    _OWNED[folder] = model


def _named(match: ResolverMatch | None) -> Any:
    """The replicator or draft that an address names; None: it names none, or one that is not
    there."""
    if match is None or _PK not in match.route:
        return None
    folder = match.route.partition(_PK)[0].rstrip("/").rpartition("/")[2]
    manager: Any = _OWNED[folder]._default_manager
    return manager.filter(pk=match.kwargs["pk"]).first()
