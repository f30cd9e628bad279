"""Identifies a program by its token. Only the SHA-256 of a token is stored."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from replicators.models import ApiToken
from replicators.tokens import TokenRefused, token_of


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`, or `Token <token>`, as many clients send it."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() not in {b"bearer", b"token"}:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("The header must read: Authorization: Bearer <token>.")
        try:
            token = token_of(parts[1].decode("latin-1"))
        except TokenRefused as err:
            raise AuthenticationFailed(str(err)) from err
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):
    """How the schema describes the token."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
