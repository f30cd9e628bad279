"""The administration: users and groups, whose changes the audit trail records, and everybody's
tokens, to be revoked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from replicators import accounts, audit
from replicators.models import ApiToken
from replicators.tokens import token_revoke

admin.site.unregister(User)
admin.site.unregister(Group)


class PasswordForm(AdminPasswordChangeForm):
    """An administrator gives a user another password; the user's tokens end with the old one."""

    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)
        accounts.password_changed(user=user)
        return user


def _plain(value: Any) -> Any:
    """A form's value as the audit trail shows it."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [str(v) for v in value]
    return value


class Audited(admin.ModelAdmin):
    """Records in the audit trail what is made, changed and deleted here."""

    def save_related(
        self, request: HttpRequest, form: ModelForm, formsets: Any, change: bool
    ) -> None:
        """As Django's. When it is called, the row and what belongs to it are stored."""
        super().save_related(request, form, formsets, change)
        row = form.instance
        names = [n for n in form.changed_data if n in form.cleaned_data]
        before = {n: _plain(form.initial.get(n)) for n in names} if change else {}
        after = {n: _plain(form.cleaned_data[n]) for n in names}
        old, new = audit.changed(before, after)
        act = "changed" if change else "made"
        audit.record(f"{row._meta.model_name}_{act}", audit.Thing.of(row), old=old, new=new)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete one row."""
        self._tell_deleted(obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete the rows that were ticked."""
        for row in queryset:
            self._tell_deleted(row)
        super().delete_queryset(request, queryset)

    def _tell_deleted(self, row: Model) -> None:
        audit.record(f"{row._meta.model_name}_deleted", audit.Thing.of(row))


@admin.register(User)
class AuditedUsers(Audited, UserAdmin):
    """Users."""

    change_password_form = PasswordForm


@admin.register(Group)
class AuditedGroups(Audited, GroupAdmin):
    """Groups."""


@admin.register(ApiToken)
class Tokens(admin.ModelAdmin):
    """Everybody's tokens; deleting one revokes it."""

    list_display = ("name", "user", "scope", "created_at", "last_used_at", "expires_at")
    list_filter = ("user", "scope")
    search_fields = ("name", "user__username")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: users make their tokens on the account page."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Never: a token can't be changed."""
        return False

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        """Revoke it."""
        token_revoke(token=obj, reason="by an administrator")

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Revoke those that were ticked."""
        for token in queryset:
            token_revoke(token=token, reason="by an administrator")
