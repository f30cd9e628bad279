"""Limits the size of a request. The size that the request announces is checked before anything is
read. Forms and REST have one limit."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from replicators.api.errors import Answer

REST = "/api/v1/"
Next = Callable[[HttpRequest], HttpResponse]


class Bodies:
    """Middleware: 413 for a body that is too large. A body is read whole and is in memory several
    times."""

    def __init__(self, get_response: Next) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Check the announced size only: servers read no further than that."""
        announced = request.META.get("CONTENT_LENGTH") or ""
        if announced.isdigit() and int(announced) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return too_large(request)
        return self._get_response(request)


def too_large(request: HttpRequest) -> HttpResponse:
    """The answer, with the limit."""
    most = f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE / 1_000_000:g} MB"
    return _answer(
        request, "body-too-large", f"A request may bring at most {most}. Send it in parts."
    )


def too_many_fields(request: HttpRequest) -> HttpResponse:
    """The same answer for a form with too many fields."""
    most = f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}"
    return _answer(request, "too-many-fields", f"A form may have at most {most} fields.")


def _answer(request: HttpRequest, code: str, text: str) -> HttpResponse:
    if request.path.startswith(REST):
        return JsonResponse(Answer(413, code, text).body(), status=413)
    return HttpResponse(render_to_string("413.html", {"text": text}), status=413)
