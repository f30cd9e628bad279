"""REST: the tables of a deployed replicator. They are added and removed while it runs."""

from __future__ import annotations

from collections.abc import Callable

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from drafts.api import errors as _errors  # noqa: F401  registers the answers
from drafts.api.serializers import (
    TableAddSerializer,
    TableModeSerializer,
    TableRemoveQuerySerializer,
)
from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer, valid
from replicators.config import parse_tables
from replicators.models import Replicator
from replicators.people import person
from runners.api.serializers import (
    TableAcceptedSerializer,
    TableListQuerySerializer,
    TableSerializer,
)
from runners.api.views import accepted
from runners.models import Table
from runners.selectors import replicator_view, table_views, tables_accepted, tables_found
from runners.services import table_remove
from runners.tables.changes import table_add, table_change, table_mode

_ACCEPTED = {
    202: TableAcceptedSerializer,
    400: ErrorSerializer,
    404: ErrorSerializer,
    409: ErrorSerializer,
}


class ReplicatorTables(RestView):
    """List, add and remove; a run that runs takes it up, and the other tables do not pause."""

    @asks(TableListQuerySerializer)
    @extend_schema(
        summary="List the tables, with what was asked of them",
        tags=["replicators"],
        operation_id="replicators_tables_list",
        responses={200: TableSerializer(many=True), 400: ErrorSerializer, 404: ErrorSerializer},
    )
    def get(self, request: Request, pk: str) -> Response:
        query = asked(TableListQuerySerializer, request)
        view = replicator_view(get_object_or_404(Replicator, pk=pk))
        tables = table_views(view, tables_found(view, **query))
        return Response(TableSerializer([t.asked_json() for t in tables], many=True).data)

    @extend_schema(
        summary="Add a table",
        description="Assesses it first; 409 with the problems where one is an ERROR. It is "
        "copied, then followed.",
        tags=["replicators"],
        operation_id="replicators_tables_add",
        request=TableAddSerializer,
        responses=_ACCEPTED,
    )
    def post(self, request: Request, pk: str) -> Response:
        return _with_choice(table_add, request, pk)

    @extend_schema(
        summary="Copy a table in another mode",
        description="Assesses the mode first; 409 with the problems. The table is copied afresh, "
        "as by a re-sync.",
        tags=["replicators"],
        operation_id="replicators_tables_mode",
        request=TableModeSerializer,
        responses=_ACCEPTED,
    )
    def patch(self, request: Request, pk: str) -> Response:
        data = valid(TableModeSerializer, request.data)
        table = table_mode(
            replicator=get_object_or_404(Replicator, pk=pk),
            schema=data["schema"],
            name=data["table"],
            mode=data["mode"],
            actor=person(request),
        )
        return _accepted(table)

    @extend_schema(
        summary="Change what is copied of a table",
        description="The whole choice: columns, filter, kinds of changes and mode; what is left "
        "out has its default. Assesses it "
        "first; 409 with the problems where one is an ERROR. Other columns or another filter, "
        "and inserts that are left out or taken again, "
        "copy the table afresh; its old rows stay readable until then.",
        tags=["replicators"],
        operation_id="replicators_tables_change",
        request=TableAddSerializer,
        responses=_ACCEPTED,
    )
    def put(self, request: Request, pk: str) -> Response:
        return _with_choice(table_change, request, pk)

    @asks(TableRemoveQuerySerializer)
    @extend_schema(
        summary="Remove a table",
        description="It is followed no longer; the target's table stays unless told otherwise.",
        tags=["replicators"],
        operation_id="replicators_tables_remove",
        request=None,
        responses=_ACCEPTED,
    )
    def delete(self, request: Request, pk: str) -> Response:
        data = asked(TableRemoveQuerySerializer, request)
        table = table_remove(
            replicator=get_object_or_404(Replicator, pk=pk),
            schema=data["schema"],
            name=data["table"],
            keep_target=data["keep_target"],
            actor=person(request),
        )
        return _accepted(table)


def _with_choice(service: Callable[..., Table], request: Request, pk: str) -> Response:
    """Call a service with the table's complete choice."""
    data = valid(TableAddSerializer, request.data)
    table = service(
        replicator=get_object_or_404(Replicator, pk=pk),
        selection=parse_tables([{**data, "name": data["table"]}])[0],
        actor=person(request),
    )
    return _accepted(table)


def _accepted(table: Table) -> Response:
    return accepted(table.replicator, tables_accepted(table.replicator, [table])[0])
