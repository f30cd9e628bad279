"""REST: look into the servers that a draft or a replicator has stored, so that nobody sends their
secrets again. As in `assessments.api`, the right to edit is needed, since a look makes this server
connect."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from assessments import services
from assessments.api.serializers import (
    ConnectionAnswerSerializer,
    RoleSerializer,
    TableSchemaSerializer,
    TableSummarySerializer,
)
from assessments.api.views import ASKED, connection_answer
from replicators.api.rest import RestView
from replicators.api.serializers import ErrorSerializer, valid
from replicators.connectors.model.schema import TableId
from replicators.services import params_of
from runners.api.serializers import TableNameSerializer

_ERRORS = {400: ErrorSerializer, 404: ErrorSerializer}
_ASKED = {**_ERRORS, **ASKED}


class StoredServers(RestView, GenericViewSet[Any]):
    """For a view set of `Draft` or `Replicator`."""

    @extend_schema(
        summary="Test a stored connection",
        description="A failed test is an answer too: 200 with `ok` false and the problems.",
        request=RoleSerializer,
        responses={200: ConnectionAnswerSerializer, **_ERRORS},
    )
    @action(detail=True, methods=["post"], url_path="connections/test", keeps_answers=False)
    def test_connection(self, request: Request, pk: str) -> Response:
        role = valid(RoleSerializer, request.data)["role"]
        return connection_answer(role=role, **self._server(role))

    @extend_schema(
        summary="List the tables of the stored source",
        request=None,
        responses={200: TableSummarySerializer(many=True), **_ASKED},
    )
    @action(
        detail=True,
        methods=["post"],
        url_path="source/tables",
        pagination_class=None,
        keeps_answers=False,
    )
    def source_tables(self, request: Request, pk: str) -> Response:
        found = services.list_tables(**self._server("source"))
        return Response(TableSummarySerializer(found, many=True).data)

    @extend_schema(
        summary="Describe a table of the stored source",
        request=TableNameSerializer,
        responses={200: TableSchemaSerializer, **_ASKED},
    )
    @action(detail=True, methods=["post"], url_path="source/tables/describe", keeps_answers=False)
    def source_table(self, request: Request, pk: str) -> Response:
        data = valid(TableNameSerializer, request.data)
        table = TableId(data["schema"], data["table"])
        found = services.describe_table(**self._server("source"), table=table)
        return Response(TableSchemaSerializer(found.to_json()).data)

    def _server(self, role: str) -> dict[str, Any]:
        row = self.get_object()
        return {"kind": getattr(row, f"{role}_kind"), "params": params_of(row, role)}
