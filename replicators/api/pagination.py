"""Lists by page: `{"count", "next", "previous", "results"}`."""

from __future__ import annotations

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    """100 a page, up to 500 with `?page_size=`."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500
