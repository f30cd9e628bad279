"""Tells the audit trail how a request came in, from where, and who sent it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from replicators.audit import acting, origin_of
from replicators.throttle import address_of

Answer = Callable[[HttpRequest], HttpResponse]


class Audited:
    """Middleware. It finds out who sent the request only when something is recorded."""

    def __init__(self, get_response: Answer) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request as an action of its sender."""
        with acting(origin_of(request, address_of(request))):
            return self._get_response(request)
