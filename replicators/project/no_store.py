"""What is answered is for whoever asked, now: neither a proxy nor a browser that somebody else uses
later may keep it. Static files are answered before, and say themselves how long they are good."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

Next = Callable[[HttpRequest], HttpResponse]


class NoStore:
    """Middleware: `Cache-Control: no-store`, unless the view said something itself."""

    def __init__(self, get_response: Next) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response
