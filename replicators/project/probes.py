"""Answers a process supervisor before anything else handles the request: no sign-in, no redirect to
HTTPS, any host name. `/healthz`: the process answers. `/readyz`: its database answers and has the
tables of this version."""

from __future__ import annotations

from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

Answer = Callable[[HttpRequest], HttpResponse]


class Probes:
    """Middleware, the first one. Once the database is migrated it stays so, and is not checked
    again."""

    def __init__(self, get_response: Answer) -> None:
        self._get_response = get_response
        self._is_migrated = False

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer these two addresses; all others go on."""
        if request.path == "/healthz":
            return HttpResponse("ok\n", content_type="text/plain")
        if request.path == "/readyz":
            return self._ready()
        return self._get_response(request)

    def _ready(self) -> HttpResponse:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            self._is_migrated = self._is_migrated or not _waiting()
        except (DatabaseError, InterfaceError):
            return JsonResponse({"status": "The database does not answer."}, status=503)
        if not self._is_migrated:
            return JsonResponse({"status": "Migrations wait: run `make migrate`."}, status=503)
        return JsonResponse({"status": "ready"})


def _waiting() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
