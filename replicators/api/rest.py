"""What every address under /api/v1/ has in common: it refuses unknown query parameters, and its
POST may carry an idempotency key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from replicators.api import idempotency
from replicators.api.serializers import valid
from replicators.models import IdempotencyKey

Handler = TypeVar("Handler", bound=Callable[..., Any])
_PAGES = frozenset({"page", "page_size"})
_UNKNOWN = "This query parameter is not known."
_TWICE = "This query parameter is given more than once."


def asks(query: type[serializers.Serializer[Any]]) -> Callable[[Handler], Handler]:
    """Mark a handler with the query parameters that it takes. The schema describes them; others are
    refused."""

    def mark(handler: Handler) -> Handler:
        described: Handler = extend_schema(parameters=[query])(handler)
        described.query = query  # type: ignore[attr-defined]
        return described

    return mark


def asked(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The query parameters, checked and parsed. An empty parameter is not the same as a missing
    one. DRF's ValidationError."""
    return valid(kind, request.query_params.dict())


class RestView(APIView):
    """The base of all views under /api/v1/. `keeps_answers` is false where a POST only looks: it
    has no idempotency key."""

    keeps_answers = True
    _key: IdempotencyKey | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not hasattr(self, (request.method or "").lower()):
            self.http_method_not_allowed(request)
        self._require_known(request)
        if self.keeps_answers:
            self._key = idempotency.begin(request)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        if self._key is not None:
            idempotency.end(self._key, response)
        return super().finalize_response(request, response, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Response:
        """An exception that DRF does not answer is answered elsewhere, and the key is free again at
        once."""
        try:
            return super().handle_exception(exc)
        except Exception:
            if self._key is not None:
                idempotency.release(self._key)
            raise

    def _require_known(self, request: Request) -> None:
        query = request.query_params
        faults = dict.fromkeys(set(query) - self._known(request), _UNKNOWN)
        faults |= {n: _TWICE for n in query if len(query.getlist(n)) > 1 and n not in faults}
        if faults:
            raise serializers.ValidationError({n: [faults[n]] for n in sorted(faults)})

    def _known(self, request: Request) -> frozenset[str]:
        name = getattr(self, "action", None) or (request.method or "").lower()
        query = getattr(getattr(self, name, None), "query", None)
        known = frozenset(query().fields) if query is not None else frozenset()
        return known | _PAGES if name == "list" else known
