"""Pages answer 503 for errors that pass by themselves, as REST does: the application's own database
is locked or away, or too many looks are running. `replicators.api.errors` says which errors these
are."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from replicators.api.errors import Answer, answer_of

REST = "/api/v1/"
Next = Callable[[HttpRequest], HttpResponse]

UNAVAILABLE = 503


class Unavailable:
    """Middleware for errors of views. Errors of the middlewares themselves come through
    `handler500`."""

    def __init__(self, get_response: Next) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Django's hook; None lets the error go on."""
        return unavailable(request, error)


def unavailable(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """The answer to an error that passes by itself; None for any other."""
    answer = answer_of(error) if isinstance(error, Exception) else None
    if answer is None or answer.status != UNAVAILABLE:
        return None
    response = _rest(answer) if request.path.startswith(REST) else _page(answer)
    response["Retry-After"] = str(answer.retry_after)
    return response


def _rest(answer: Answer) -> HttpResponse:
    return JsonResponse(answer.body(), status=answer.status)


def _page(answer: Answer) -> HttpResponse:
    """Made without the request: the database that fails may be the one that knows who is signed
    in."""
    text = render_to_string("503.html", {"text": answer.message})
    return HttpResponse(text, status=answer.status)
