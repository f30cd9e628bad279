"""After a sign-in that was asked for, the user comes back to a page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseRedirect

from replicators.pages import came_from

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class SignInFirst(LoginRequiredMiddleware):
    """Django's middleware, with one difference. A button that was pressed after the session ended
    has no effect and no page of its own: after the sign-in, the page with the button is shown
    again."""

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponseRedirect:
        """Redirect to the form, which then leads to a page that makes sense."""
        if request.method in _SAFE:
            return super().handle_no_permission(request, view_func)
        parts = urlsplit(came_from(request) or "/")
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return redirect_to_login(path, self.get_login_url(view_func))
