"""People's accounts: sign-ins and failed sign-ins, users that are made and changed, passwords. The
audit trail records all of it."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from replicators import audit
from replicators.audit import Thing
from replicators.invalid import InvalidConfig
from replicators.tokens import tokens_end


def signed_in(user: User) -> None:
    """Record that somebody signed in by the form."""
    audit.record("signed_in", Thing.of(user), actor=user)


def signed_out(user: User) -> None:
    """Record that somebody signed out."""
    audit.record("signed_out", Thing.of(user), actor=user)


def sign_in_failed(name: str) -> None:
    """Record a name and a password that do not fit. A name that no user has is not kept: it may be
    a password in the wrong field."""
    user = User.objects.filter(username=name).first()
    audit.record(
        "sign_in_failed",
        Thing("user", name="a name of no user") if user is None else Thing.of(user),
    )


@transaction.atomic
def password_change(*, form: PasswordChangeForm, keeps_tokens: bool = False) -> int:
    """Store the password of a valid form, and return how many tokens ended. The user's tokens end
    with the old password, unless they are to be kept."""
    return password_changed(user=form.save(), keeps_tokens=keeps_tokens)


def password_changed(*, user: User, keeps_tokens: bool = False) -> int:
    """Record that a user's password changed. The user's tokens end, unless they are to be kept.
    Returns how many tokens ended."""
    ended = 0 if keeps_tokens else tokens_end(user=user, reason="password changed")
    audit.record("password_changed", Thing.of(user), new={"tokens_ended": ended} if ended else {})
    return ended


@transaction.atomic
def user_create(
    *, actor: User, username: str, password: str, groups: Sequence[str] = (), is_active: bool = True
) -> User:
    """A new user. InvalidConfig names a faulty field."""
    user = User(username=username, is_active=is_active)
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as err:
        raise InvalidConfig({k: " ".join(v) for k, v in err.message_dict.items()}) from err
    _set_password(user, password)
    found = _groups(groups)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as err:
        raise InvalidConfig({"username": "is taken"}) from err
    user.groups.set(found)
    audit.record("user_made", Thing.of(user), actor=actor, new=_values(user))
    return user


@transaction.atomic
def user_update(
    *,
    actor: User,
    user: User,
    password: str | None = None,
    groups: Sequence[str] | None = None,
    is_active: bool | None = None,
) -> User:
    """Change a user. What is None stays. A new password ends the user's tokens. InvalidConfig names
    a faulty field. Users can't lock themselves out."""
    row = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    before = _values(row)
    if is_active is not None:
        if row.pk == actor.pk and not is_active:
            raise InvalidConfig({"is_active": "can't be taken from yourself"})
        row.is_active = is_active
    if password is not None:
        _set_password(row, password)
    row.save()
    if groups is not None:
        row.groups.set(_groups(groups))
    old, new = audit.changed(before, _values(row))
    if new:
        audit.record("user_changed", Thing.of(row), actor=actor, old=old, new=new)
    if password is not None:
        password_changed(user=row)
    return row


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as err:
        raise InvalidConfig({"password": " ".join(err.messages)}) from err
    user.set_password(password)


def _groups(names: Sequence[str]) -> list[Group]:
    found = {g.name: g for g in Group.objects.filter(name__in=names)}
    if missing := sorted(set(names) - set(found)):
        raise InvalidConfig({"groups": f"there is none called {', '.join(missing)}"})
    return list(found.values())


def _values(user: User) -> dict[str, object]:
    groups = sorted(user.groups.values_list("name", flat=True))
    return {"username": user.username, "is_active": user.is_active, "groups": groups}
