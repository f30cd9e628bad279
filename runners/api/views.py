"""REST: running replicators. Actions answer 202 at once; the work happens in the background.
`drafts.api` mounts this, with the change of a definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from replicators.api.pagination import Pages
from replicators.api.preconditions import require_match, tagged
from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer, ReplicatorSerializer, valid
from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from replicators.people import person
from replicators.services import replicator_export
from runners import selectors, services
from runners.api import errors as _errors  # noqa: F401  registers the answers
from runners.api import serializers
from runners.logs import read
from runners.models import Table
from runners.tables import discovery
from runners.tables.conflicts import conflicts_of
from runners.tables.deliveries import deliveries_shown
from runners.tables.quarantine import quarantined_json, quarantined_page
from runners.tables.watermarks import watermarks_shown

_TAGS = ["replicators"]
_MISSING = {404: ErrorSerializer}
_ACTION: dict[str, Any] = {
    "tags": _TAGS,
    "request": None,
    "responses": {202: serializers.AcceptedSerializer, 404: ErrorSerializer, 409: ErrorSerializer},
}
_TABLE_ACTION: dict[str, Any] = {
    "tags": _TAGS,
    "request": serializers.TableNameSerializer,
    "responses": {
        202: serializers.TableAcceptedSerializer,
        400: ErrorSerializer,
        404: ErrorSerializer,
        409: ErrorSerializer,
    },
}


def _table(query: dict[str, Any]) -> TableId | None:
    schema, name = query.pop("schema"), query.pop("table")
    return TableId(schema, name) if name else None


class ReplicatorViewSet(RestView, GenericViewSet[Replicator]):
    """Replicators: definition, state, actions."""

    queryset = Replicator.objects.all()
    serializer_class = ReplicatorSerializer
    pagination_class = Pages
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Replicator]:
        return Replicator.objects.all()

    @asks(serializers.ReplicatorListQuerySerializer)
    @extend_schema(
        summary="List the replicators",
        tags=_TAGS,
        responses={200: serializers.ReplicatorLineSerializer(many=True), 400: ErrorSerializer},
    )
    def list(self, request: Request) -> Response:
        query = asked(serializers.ReplicatorListQuerySerializer, request)
        page = self.paginate_queryset(selectors.replicators_found(**query))
        return self.get_paginated_response(
            serializers.ReplicatorLineSerializer(page, many=True).data
        )

    @extend_schema(
        summary="A replicator's definition, secrets masked",
        tags=_TAGS,
        description="Its `ETag` stands for this very answer: a change that is sent with "
        "`If-Match` is refused with 412 where "
        "somebody changed it meanwhile.",
        responses={200: ReplicatorSerializer, **_MISSING},
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        return tagged(request, ReplicatorSerializer(self.get_object()).data)

    @asks(serializers.DeleteQuerySerializer)
    @extend_schema(
        summary="Delete a replicator",
        description="Stops it, then removes its slot and publication; the target's tables stay "
        "unless told otherwise. Once it answers 404, "
        "`deletion/` says what could not be removed.",
        tags=_TAGS,
        request=None,
        responses={
            202: serializers.AcceptedSerializer,
            400: ErrorSerializer,
            412: ErrorSerializer,
            **_MISSING,
        },
    )
    def destroy(self, request: Request, pk: str) -> Response:
        query = asked(serializers.DeleteQuerySerializer, request)
        replicator = self.get_object()
        require_match(request, ReplicatorSerializer(replicator).data)
        services.replicator_delete(replicator=replicator, actor=person(request), **query)
        return _accepted(replicator)

    @extend_schema(
        summary="What became of a deleted replicator",
        description="404 while it is there, also while it is being deleted.",
        tags=_TAGS,
        responses={200: serializers.DeletionSerializer, **_MISSING},
    )
    @action(detail=True)
    def deletion(self, request: Request, pk: str) -> Response:
        reported = selectors.deletion_reported(pk)
        if reported is None:
            raise Http404
        return Response(serializers.DeletionSerializer(reported).data)

    @extend_schema(
        summary="A replicator's definition without secrets, to keep or to import elsewhere",
        tags=_TAGS,
        responses={200: {"type": "object", "additionalProperties": {}}, **_MISSING},
    )
    @action(detail=True)
    def export(self, request: Request, pk: str) -> Response:
        return Response(replicator_export(self.get_object()))

    @extend_schema(summary="Start", **_ACTION)
    @action(detail=True, methods=["post"])
    def start(self, request: Request, pk: str) -> Response:
        return self._action(services.replicator_start)

    @extend_schema(summary="Pause", **_ACTION)
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        return self._action(services.replicator_pause)

    @extend_schema(summary="Resume", **_ACTION)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        return self._action(services.replicator_resume)

    @extend_schema(
        summary="Retry now",
        description="For a replicator that waits for its next try, or has failed and has none: "
        "it is tried at once. 409 for any other.",
        **_ACTION,
    )
    @action(detail=True, methods=["post"], url_path="retry")
    def retry_now(self, request: Request, pk: str) -> Response:
        return self._action(services.replicator_retry)

    @extend_schema(summary="Copy a table afresh, then follow it again", **_TABLE_ACTION)
    @action(detail=True, methods=["post"], url_path="tables/resync")
    def resync(self, request: Request, pk: str) -> Response:
        return self._table_action(services.table_resync)

    @extend_schema(
        summary="Copy many tables afresh",
        description="Exactly one of `tables`, `state` and `all` says which. All of them are "
        "asked for, or none: 404 where one is not there.",
        tags=_TAGS,
        request=serializers.ResyncManySerializer,
        responses={
            202: serializers.TablesAcceptedSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **_MISSING,
        },
    )
    @action(detail=True, methods=["post"], url_path="resync")
    def resync_many(self, request: Request, pk: str) -> Response:
        data = valid(serializers.ResyncManySerializer, request.data)
        replicator = self.get_object()
        names = None
        if "tables" in data:
            names = [TableId(t["schema"], t["table"]) for t in data["tables"]]
        elif "state" in data:
            view = selectors.replicator_view(replicator)
            rows = selectors.tables_found(view, state=data["state"])
            names = [TableId(t.schema_name, t.name) for t in rows]
        found = services.tables_resync(replicator=replicator, names=names, actor=person(request))
        return accepted(replicator, {"tables": selectors.tables_accepted(replicator, found)})

    @extend_schema(summary="Try a failing table again now", **_TABLE_ACTION)
    @action(detail=True, methods=["post"], url_path="tables/retry")
    def retry(self, request: Request, pk: str) -> Response:
        return self._table_action(services.table_retry)

    @extend_schema(
        summary="Merge a table's quarantined rows, with NULL in place of what the target can't "
        "hold",
        **_TABLE_ACTION,
    )
    @action(detail=True, methods=["post"], url_path="tables/replay")
    def replay(self, request: Request, pk: str) -> Response:
        return self._table_action(services.table_replay)

    @asks(serializers.QuarantinedQuerySerializer)
    @extend_schema(
        summary="The rows of a table that are quarantined",
        tags=_TAGS,
        responses={200: serializers.QuarantinedSerializer, 400: ErrorSerializer, **_MISSING},
    )
    @action(detail=True, url_path="tables/quarantined", pagination_class=None, filter_backends=[])
    def quarantined(self, request: Request, pk: str) -> Response:
        query = asked(serializers.QuarantinedQuerySerializer, request)
        name = query.pop("table")
        try:
            table, rows = quarantined_page(self.get_object(), name=name, **query)
        except Table.DoesNotExist as err:
            raise Http404 from err
        return Response(serializers.QuarantinedSerializer(quarantined_json(table, rows)).data)

    @extend_schema(
        summary="Take a table back to a time, then apply the changes since again",
        description="Its rows are those of now at the end, and are seen all the while. 409 says "
        "which times can be reached.",
        **{**_TABLE_ACTION, "request": serializers.TableRewindSerializer},
    )
    @action(detail=True, methods=["post"], url_path="tables/rewind")
    def rewind(self, request: Request, pk: str) -> Response:
        data = valid(serializers.TableRewindSerializer, request.data)
        return self._on_table(services.table_rewind, data["schema"], data["table"], at=data["at"])

    @extend_schema(
        summary="New tables at the source that wait for an answer",
        tags=_TAGS,
        responses={200: serializers.NewTableSerializer(many=True), **_MISSING},
        filters=False,
    )
    @action(detail=True, url_path="tables/new", pagination_class=None)
    def new_tables(self, request: Request, pk: str) -> Response:
        found = discovery.tables_asked(self.get_object())
        return Response(serializers.NewTableSerializer(found, many=True).data)

    @extend_schema(
        summary="Ask about a new table no more",
        tags=_TAGS,
        request=serializers.TableNameSerializer,
        responses={204: None, 400: ErrorSerializer, **_MISSING},
    )
    @action(detail=True, methods=["post"], url_path="tables/ignore")
    def ignore(self, request: Request, pk: str) -> Response:
        data = valid(serializers.TableNameSerializer, request.data)
        discovery.new_table_ignore(
            replicator=self.get_object(),
            schema=data["schema"],
            name=data["table"],
            actor=person(request),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Live state of a replicator and its tables",
        tags=_TAGS,
        responses={200: serializers.StatusSerializer, **_MISSING},
    )
    @action(detail=True)
    def status(self, request: Request, pk: str) -> Response:
        return Response(selectors.replicator_status(self.get_object()))

    @asks(serializers.WatermarkQuerySerializer)
    @extend_schema(
        summary="The last watermarks: each table's version in the target at one position of the "
        "source",
        tags=_TAGS,
        responses={
            200: serializers.WatermarkSerializer(many=True),
            400: ErrorSerializer,
            404: ErrorSerializer,
        },
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def watermarks(self, request: Request, pk: str) -> Response:
        query = asked(serializers.WatermarkQuerySerializer, request)
        return Response(watermarks_shown(self.get_object(), **query))

    @asks(serializers.DeliveryQuerySerializer)
    @extend_schema(
        summary="The last deliveries of a source whose data sets arrive whole, with their changes",
        tags=_TAGS,
        responses={
            200: serializers.DeliverySerializer(many=True),
            400: ErrorSerializer,
            404: ErrorSerializer,
        },
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def deliveries(self, request: Request, pk: str) -> Response:
        query = asked(serializers.DeliveryQuerySerializer, request)
        return Response(deliveries_shown(self.get_object(), **query))

    @asks(serializers.ConflictQuerySerializer)
    @extend_schema(
        summary="The last changes that lost against later ones at a target that is replicated back",
        tags=_TAGS,
        responses={
            200: serializers.ConflictSerializer(many=True),
            400: ErrorSerializer,
            404: ErrorSerializer,
            502: ErrorSerializer,
            504: ErrorSerializer,
        },
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def conflicts(self, request: Request, pk: str) -> Response:
        query = asked(serializers.ConflictQuerySerializer, request)
        found = conflicts_of(self.get_object(), **query)
        return Response(serializers.ConflictSerializer(found, many=True).data)

    @asks(serializers.LogQuerySerializer)
    @extend_schema(
        summary="Log lines, by cursor",
        tags=_TAGS,
        responses={200: serializers.LogSerializer, 400: ErrorSerializer, **_MISSING},
    )
    @action(detail=True)
    def logs(self, request: Request, pk: str) -> Response:
        query = asked(serializers.LogQuerySerializer, request)
        lines = read.log_lines(self.get_object(), **query)
        after = lines[-1].pk if lines else query["after"]
        return Response(serializers.LogSerializer({"after": after, "lines": lines}).data)

    @asks(serializers.EventQuerySerializer)
    @extend_schema(
        summary="What happened to a replicator",
        tags=_TAGS,
        responses={200: serializers.EventsSerializer, 400: ErrorSerializer, **_MISSING},
    )
    @action(detail=True)
    def events(self, request: Request, pk: str) -> Response:
        query = asked(serializers.EventQuerySerializer, request)
        found = selectors.events(self.get_object(), table=_table(query), **query)
        after = found[0].pk if found else query["after"]
        return Response(serializers.EventsSerializer({"after": after, "events": found}).data)

    @asks(serializers.MetricQuerySerializer)
    @extend_schema(
        summary="Metrics of the tables over time",
        tags=_TAGS,
        responses={
            200: serializers.MetricSerializer(many=True),
            400: ErrorSerializer,
            404: ErrorSerializer,
        },
        filters=False,
    )
    @action(detail=True, pagination_class=None)
    def metrics(self, request: Request, pk: str) -> Response:
        query = asked(serializers.MetricQuerySerializer, request)
        return Response(selectors.metrics(self.get_object(), table=_table(query), **query))

    def _action(self, service: Callable[..., Any]) -> Response:
        replicator = self.get_object()
        service(replicator=replicator, actor=person(self.request))
        return _accepted(replicator)

    def _table_action(self, service: Callable[..., Any]) -> Response:
        data = valid(serializers.TableNameSerializer, self.request.data)
        return self._on_table(service, data["schema"], data["table"])

    def _on_table(
        self, service: Callable[..., Any], schema: str, name: str, **values: Any
    ) -> Response:
        replicator = self.get_object()
        table = service(
            replicator=replicator,
            schema=schema,
            name=name,
            actor=person(self.request),
            **values,
        )
        return accepted(replicator, selectors.tables_accepted(replicator, [table])[0])


def accepted(replicator: Replicator, body: dict[str, Any]) -> Response:
    """202, with the address to ask for the outcome."""
    where = reverse("api:replicator-status", args=[replicator.pk])
    return Response(body, status=status.HTTP_202_ACCEPTED, headers={"Location": where})


def _accepted(replicator: Replicator) -> Response:
    shown = selectors.replicator_badge(replicator)
    body = {
        "id": str(replicator.pk),
        "name": replicator.name,
        "state": shown.state,
        "desired_state": replicator.desired_state,
    }
    return accepted(replicator, body)
