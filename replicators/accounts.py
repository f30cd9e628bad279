"""What happens to people's accounts, as the audit trail is told of it: who came in, who did not, whose password changed."""

from __future__ import annotations

from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.db import transaction

from replicators import audit
from replicators.audit import Thing
from replicators.tokens import tokens_end


def signed_in(user: User) -> None:
    """Somebody came in by the form."""
    audit.record("signed_in", Thing.of(user), actor=user)


def signed_out(user: User) -> None:
    """Somebody went."""
    audit.record("signed_out", Thing.of(user), actor=user)


def sign_in_failed(name: str) -> None:
    """A name and a password that do not fit. A name that no user has is not kept: it may be a password in the wrong field."""
    user = User.objects.filter(username=name).first()
    audit.record(
        "sign_in_failed",
        Thing("user", name="a name of no user") if user is None else Thing.of(user),
    )


@transaction.atomic
def password_change(*, form: PasswordChangeForm, keeps_tokens: bool = False) -> int:
    """Store the password of a valid form. The user's tokens end with the old one unless they are to be kept; how many ended."""
    return password_changed(user=form.save(), keeps_tokens=keeps_tokens)


def password_changed(*, user: User, keeps_tokens: bool = False) -> int:
    """The password of a user is another one now; how many of the user's tokens ended with it."""
    ended = 0 if keeps_tokens else tokens_end(user=user, reason="password changed")
    audit.record("password_changed", Thing.of(user), new={"tokens_ended": ended} if ended else {})
    return ended
