"""Answers to errors outside of views: under /api/v1/ in the form of every REST error, elsewhere as
a page."""

from __future__ import annotations

import sys
from dataclasses import replace

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views import defaults

from replicators.api.errors import Answer
from replicators.project.bodies import too_large, too_many_fields
from replicators.project.unavailable import unavailable

_REST = "/api/v1/"
_MISSING = Answer(404, "not-found", "There is nothing at this address.")
_REFUSED = Answer(400, "bad-request", "The request is not valid.")
_BROKEN = Answer(500, "internal", "Something went wrong. The server's log has the details.")


def _answer(answer: Answer) -> HttpResponse:
    return JsonResponse(answer.body(), status=answer.status)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Nothing is at this address."""
    if request.path.startswith(_REST):
        return _answer(_MISSING)
    return defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The request can't be accepted as it was sent."""
    if isinstance(exception, RequestDataTooBig):
        return too_large(request)
    if isinstance(exception, TooManyFieldsSent):
        return too_many_fields(request)
    if request.path.startswith(_REST):
        text = str(exception) if isinstance(exception, BadRequest) else _REFUSED.message
        return _answer(replace(_REFUSED, message=text))
    return defaults.bad_request(request, exception)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form of another session, for example a sign-in page that was open while somebody signed in
    in another tab."""
    if request.path == reverse("login") and request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    return render(request, "403_csrf.html", status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault of ours, unless it is one that passes by itself."""
    passing = unavailable(request, sys.exc_info()[1])
    if passing is not None:
        return passing
    return _answer(_BROKEN) if request.path.startswith(_REST) else defaults.server_error(request)
