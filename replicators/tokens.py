"""The tokens that programs use: made with an end and a scope, revoked, ended. Only this module
writes their rows."""

from __future__ import annotations

import secrets as random
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from replicators import audit
from replicators.invalid import InvalidConfig
from replicators.models import ApiToken, Scope
from replicators.secrets import digest

TOKEN_PREFIX = "rpl_"  # noqa: S105 - a mark by which leaked tokens are found, no secret
LONGEST_NAME = 80
KEPT_DAYS = 30
"""How long a token that has ended is shown before it is deleted."""
DAY = 86400
_USED_EVERY = timedelta(minutes=1)


class TokenRefused(Exception):
    """This token is refused. The text says why."""


def days_default() -> int:
    """The days after which a token ends unless its maker says otherwise; 0: never."""
    return int(settings.TOKEN_SECONDS // DAY)


def days_longest() -> int:
    """The days after which each token ends at the latest; 0: a token may live for ever."""
    return int(settings.TOKEN_MAX_SECONDS // DAY)


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    days: int | None = None,
    scope: str = Scope.WRITE,
    maker: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """A new API token and its text, which can't be shown again. It ends after `days` (0: never), or
    after the default days. InvalidConfig names a faulty field. A token that the token `maker` makes
    lives no longer than that, and may do no more."""
    errors: dict[str, str] = {}
    if not name.strip():
        errors["name"] = "is required"
    if scope not in Scope.values or (maker is not None and maker.scope == Scope.READ != scope):
        errors["scope"] = f"must be one of {', '.join(Scope.values if maker is None else ['read'])}"
    longest, asked = days_longest(), days_default() if days is None else days
    if asked < 0 or (longest and not 1 <= asked <= longest):
        errors["days"] = f"must be a number from 1 to {longest}" if longest else "must be 0 or more"
    if errors:
        raise InvalidConfig(errors)
    end = timezone.now() + timedelta(days=asked) if asked else None
    if maker is not None and maker.expires_at is not None:
        end = min(end or maker.expires_at, maker.expires_at)
    text = TOKEN_PREFIX + random.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name.strip()[:LONGEST_NAME],
        digest=digest(text),
        scope=scope,
        expires_at=end,
    )
    _record("token_made", token)
    return token, text


@transaction.atomic
def token_revoke(*, token: ApiToken, reason: str = "") -> None:
    """Refuse the token from now on; idempotent."""
    if ApiToken.objects.filter(pk=token.pk).delete()[0]:
        _record("token_revoked", token, reason=reason)


def tokens_end(*, user: User, reason: str) -> int:
    """Revoke all tokens of a user. Returns how many."""
    tokens = list(ApiToken.objects.filter(user=user))
    for token in tokens:
        token_revoke(token=token, reason=reason)
    return len(tokens)


def token_of(text: str) -> ApiToken:
    """The token with this text. Its time of use is set to now (to the minute, so that polling
    writes little). `TokenRefused`."""
    token = ApiToken.objects.select_related("user").filter(digest=digest(text)).first()
    if token is None or not token.user.is_active:
        raise TokenRefused("This token is not known. Make one on the account page.")
    now = timezone.now()
    if token.is_over(now):
        raise TokenRefused("This token has ended. Make another one on the account page.")
    if token.last_used_at is None or now - token.last_used_at > _USED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def tokens_expire(now: datetime | None = None) -> int:
    """Record in the audit trail the tokens that have ended since the last call, and delete those
    that ended long ago. Returns how many ended."""
    now = now or timezone.now()
    ended = ApiToken.objects.filter(expires_at__lte=now, is_end_recorded=False)
    tokens = list(ended.select_related("user")[:1_000])
    for token in tokens:
        with transaction.atomic():
            if ended.filter(pk=token.pk).update(is_end_recorded=True):
                _record("token_expired", token)
    ApiToken.objects.filter(
        is_end_recorded=True, expires_at__lt=now - timedelta(days=KEPT_DAYS)
    ).delete()
    return len(tokens)


def _record(act: str, token: ApiToken, **more: str) -> None:
    new = {
        "user": token.user.get_username(),
        "scope": token.scope,
        "expires_at": token.expires_at and token.expires_at.isoformat(" ", "seconds"),
        **more,
    }
    said = {k: v for k, v in new.items() if v}
    audit.record(act, audit.Thing("token", str(token.pk), token.name), new=said)
