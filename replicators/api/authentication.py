"""Knows a program by its token; of a token only the SHA-256 is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from replicators.models import ApiToken
from replicators.secrets import digest

_USED_EVERY = timedelta(minutes=1)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`, or `Token <token>`, as many clients send it. The time of last use is kept to the
    minute, so that polling writes little."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() not in {b"bearer", b"token"}:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("The header must read: Authorization: Bearer <token>.")
        hashed = digest(parts[1].decode("latin-1"))
        token = ApiToken.objects.select_related("user").filter(digest=hashed).first()
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("This token is not known. Make one on the account page.")
        now = timezone.now()
        if token.last_used_at is None or now - token.last_used_at > _USED_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):
    """How the schema describes the token."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
