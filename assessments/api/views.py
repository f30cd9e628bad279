"""REST: look into a source before anything runs. Every request needs the right to edit, since it
makes the server connect."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from assessments import services
from assessments.api import errors as _errors  # noqa: F401  registers the answers
from assessments.api import serializers
from replicators.api.rest import RestView
from replicators.api.serializers import ErrorSerializer, valid
from replicators.config import ReplicatorConfig
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.problem import Severity

ASKED = {502: ErrorSerializer, 504: ErrorSerializer}
"""The answers that any look into a server may have."""
_ERRORS = {400: ErrorSerializer, **ASKED}


class Look(RestView):
    """A POST that looks only, because what it is asked with is no address: doing it again does no
    harm."""

    keeps_answers = False


def connection_answer(**server: Any) -> Response:
    """The answer to a connection test; see `services.connection_test`."""
    problems = services.connection_test(**server)
    is_ok = all(p.severity != Severity.ERROR for p in problems)
    return Response({"ok": is_ok, "problems": [p.to_json() for p in problems]})


class ConnectionTest(Look):
    """Does a connection work?"""

    @extend_schema(
        summary="Test a connection",
        description="A failed test is an answer too: 200 with `ok` false and the problems.",
        tags=["assessment"],
        operation_id="connections_test",
        request=serializers.ConnectionSerializer,
        responses={200: serializers.ConnectionAnswerSerializer, 400: ErrorSerializer},
        examples=[
            OpenApiExample(
                "A PostgreSQL source",
                value={
                    "role": "source",
                    "kind": "postgresql",
                    "params": {"host": "db.example", "database": "shop", "user": "replicator"},
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        return connection_answer(**valid(serializers.ConnectionSerializer, request.data))


class SourceTables(Look):
    """The tables of a source."""

    @extend_schema(
        summary="List a source's tables",
        tags=["assessment"],
        operation_id="sources_tables",
        request=serializers.SourceSerializer,
        responses={200: serializers.TableSummarySerializer(many=True), **_ERRORS},
    )
    def post(self, request: Request) -> Response:
        found = services.list_tables(**valid(serializers.SourceSerializer, request.data))
        return Response(serializers.TableSummarySerializer(found, many=True).data)


class SourceTable(Look):
    """The columns of a table."""

    @extend_schema(
        summary="Describe a table of a source",
        tags=["assessment"],
        operation_id="sources_tables_describe",
        description="404 where the source has no such table, or doesn't show it to this user.",
        request=serializers.OneTableSerializer,
        responses={200: serializers.TableSchemaSerializer, 404: ErrorSerializer, **_ERRORS},
    )
    def post(self, request: Request) -> Response:
        data = valid(serializers.OneTableSerializer, request.data)
        table = TableId(data.pop("schema"), data.pop("table"))
        found = services.describe_table(**data, table=table)
        return Response(serializers.TableSchemaSerializer(found.to_json()).data)


class Assess(Look):
    """What will work, and what will not."""

    @extend_schema(
        summary="Assess a definition",
        tags=["assessment"],
        operation_id="assess",
        request=serializers.ConfigSerializer,
        responses={200: serializers.ReportSerializer, **_ERRORS},
    )
    def post(self, request: Request) -> Response:
        config = ReplicatorConfig.parse(valid(serializers.ConfigSerializer, request.data))
        return Response(services.assess(config).to_json())
