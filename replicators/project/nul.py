"""Refuses NUL in what a page sends. No browser sends it by itself, and PostgreSQL can't store such
a text: its error would look like a fault of ours. `replicators.api.parsers` does the same for
REST's bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

REST = "/api/v1/"
Answer = Callable[[HttpRequest], HttpResponse]


class NoNul:
    """Middleware: 400 for a NUL in the query or in a form."""

    def __init__(self, get_response: Answer) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Look at all names and values once."""
        if any("\x00" in text for text in _texts(request)):
            raise BadRequest("A text must not contain a NUL character.")
        return self._get_response(request)


def _texts(request: HttpRequest) -> Iterator[str]:
    forms = (
        [] if request.path.startswith(REST) else [request.POST]
    )  # if a REST body were read here, a parser would take it for JSON
    for given in (request.GET, *forms):
        for name, values in given.lists():
            yield name
            yield from map(str, values)
