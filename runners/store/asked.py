"""Queries that a run asks all the time. Django takes longer to make such a query's SQL than the
database takes to answer it, so the SQL is made once."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import QuerySet


class Asked:
    """The rows of a query, as the driver gives them. For columns that need no conversion: numbers
    and texts. Thread safe."""

    def __init__(self, query: QuerySet[Any, Any]) -> None:
        self._sql, self._params = query.query.sql_with_params()

    def rows(self) -> list[tuple[Any, ...]]:
        """Ask now."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql, self._params)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found
