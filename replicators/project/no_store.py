"""Answers are for the person who asked, at that moment. No proxy may keep them, and no browser that
somebody else uses later. Static files are answered before this middleware, and say themselves how
long they may be kept."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

Next = Callable[[HttpRequest], HttpResponse]


class NoStore:
    """Middleware: `Cache-Control: no-store`, unless the view has set this header."""

    def __init__(self, get_response: Next) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response
