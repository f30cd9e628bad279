"""Whoever has to sign in first comes back to a page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseRedirect

from replicators.pages import came_from

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class SignInFirst(LoginRequiredMiddleware):
    """Django's; what was pressed when the session was over is not done, and has no page of its own:
    the one that it was pressed on is shown again."""

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponseRedirect:
        """To the form, and from there to where it makes sense."""
        if request.method in _SAFE:
            return super().handle_no_permission(request, view_func)
        parts = urlsplit(came_from(request) or "/")
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return redirect_to_login(path, self.get_login_url(view_func))
