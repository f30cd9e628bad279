"""Who may look and who may act; members of the groups `viewer` and `editor`, and superusers."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

VIEW = "replicators.view_replicator"
EDIT = "replicators.change_replicator"
AUDIT = "replicators.view_auditentry"
TOKENS = "replicators.delete_apitoken"
"""Only superusers have these two, unless an administrator gives them to somebody."""
ROWS = "replicators.read_rows"
"""Editors have it too: they may copy a table to any place."""


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
    """May make, start, pause, change and delete replicators, and ask a source with given
    parameters."""
    return bool(user.has_perm(EDIT))  # type: ignore[union-attr]


def can_read_rows(user: AbstractBaseUser | AnonymousUser) -> bool:
    """May read rows of copied tables, such as those of the change log."""
    return bool(user.has_perm(ROWS)) or can_edit(user)  # type: ignore[union-attr]
