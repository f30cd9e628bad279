"""How pages answer: the whole page to a browser, a panel to HTMX. Also how an action reports its
result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from replicators.permissions import VIEW, can_write

View = Callable[..., HttpResponseBase]
may_view: Callable[[View], View] = permission_required(VIEW, raise_exception=True)


def may_edit(view: View) -> View:
    """Decorates a view for people who may change what its address names."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not can_write(request.user, request.resolver_match):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return checked


def is_partial(request: HttpRequest) -> bool:
    """Whether HTMX asks, and so wants only a panel. Going back in the history needs the whole
    page."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def render_page(
    request: HttpRequest, page: str, panel: str, context: Mapping[str, object], status: int = 200
) -> HttpResponse:
    """The page, or only its panel where HTMX asks."""
    template = panel if is_partial(request) else page
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ("HX-Request",))
    return response


def came_from(request: HttpRequest) -> str:
    """The address of our page from which a form was sent; empty where the browser does not say."""
    url = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(url, {request.get_host()}, request.is_secure())
    return url if is_ours else ""


def toasted(response: HttpResponse, text: str, level: str = "success") -> HttpResponse:
    """Add a toast to a panel's answer."""
    response["HX-Trigger"] = json.dumps({"toast": {"text": text, "level": level}})
    return response


def go(request: HttpRequest, to: Any, text: str = "") -> HttpResponse:
    """Redirect to another page, which shows a message."""
    if text:
        messages.success(request, text)
    response: HttpResponse = redirect(to)
    if is_partial(request):
        url = response["Location"]
        response = HttpResponse(status=200)
        response["HX-Redirect"] = url
    return response
