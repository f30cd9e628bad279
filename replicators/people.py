"""Who acts: after the sign-in every request has a real user."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from rest_framework.request import Request


def person(request: HttpRequest | Request) -> User:
    """The signed-in user of a request that permissions let through."""
    return cast(User, request.user)
