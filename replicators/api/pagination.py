"""Lists by page: `{"count", "next", "previous", "results"}`."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from replicators.api.serializers import valid


class PageQuerySerializer(serializers.Serializer[Any]):
    """Which page."""

    page = serializers.IntegerField(min_value=1, max_value=10**9, default=1)
    page_size = serializers.IntegerField(min_value=1, max_value=500, default=100)


class Pages(PageNumberPagination):
    """100 a page, up to 500 with `?page_size=`. An impossible page is refused; 404 after the last
    page."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> list[Any] | None:
        said = {n: v for n, v in request.query_params.dict().items() if n in {"page", "page_size"}}
        valid(PageQuerySerializer, said)
        return super().paginate_queryset(queryset, request, view)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """DRF's, with the limits."""
        limits = {
            "page": {"minimum": 1, "maximum": 10**9},
            "page_size": {"minimum": 1, "maximum": 500},
        }
        found = super().get_schema_operation_parameters(view)
        return [{**p, "schema": {**p["schema"], **limits[p["name"]]}} for p in found]
