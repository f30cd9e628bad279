"""Redirects addresses without their last slash."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware
from django.utils.http import escape_leading_slashes


class Slashes(CommonMiddleware):
    """Django's middleware, with redirects that keep the method (308). After a 301 clients continue
    with GET. A DELETE without its last slash would then be answered as a GET of what was to be
    deleted."""

    response_redirect_class = partial(HttpResponsePermanentRedirect, preserve_request=True)  # type: ignore[assignment]

    def get_full_path_with_slash(self, request: HttpRequest) -> str:
        """This also works for methods that change something, and with DEBUG: see the class."""
        return escape_leading_slashes(request.get_full_path(force_append_slash=True))
