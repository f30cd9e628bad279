"""REST: subscribers, and what they ask for (`docs/subscribers.md`). Rows are for people who may
read rows."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiTypes, extend_schema
from rest_framework import serializers, status
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from replicators.api.permissions import ReadRows
from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer, StrictMixin, valid
from replicators.connectors.feed.options import RECORDS
from replicators.models import Replicator
from replicators.people import person
from runners.api import errors as _errors  # noqa: F401  registers the answers
from runners.subscribers import Subscriber
from runners.subscribing import reading
from runners.subscribing.lag import subscribers_shown
from runners.subscribing.services import subscriber_register, subscriber_remove

_TAGS = ["subscribers"]
_ERRORS = {
    400: ErrorSerializer,
    403: ErrorSerializer,
    404: ErrorSerializer,
    409: ErrorSerializer,
}
LINES, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
_ENCODINGS = {"json": LINES, "arrow": ARROW}


class AnyAccept(BaseContentNegotiation):
    """Answers whatever the client says that it accepts: the query says which form it wants, and a
    browser's EventSource asks for events only."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return (renderers[0], renderers[0].media_type)


class SubscriberTableSerializer(StrictMixin, serializers.Serializer[Any]):
    """A table that a subscriber reads. `ranges`: pairs `[from, to]` of values of the first key
    column, `to` not included; null: no end. Without ranges: all rows."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    name = serializers.CharField(max_length=255, trim_whitespace=False)
    ranges = serializers.ListField(
        child=serializers.ListField(
            child=serializers.JSONField(allow_null=True), min_length=2, max_length=2
        ),
        required=False,
        max_length=100,
    )


class SubscriberRegisterSerializer(StrictMixin, serializers.Serializer[Any]):
    """A subscriber to register. Without `tables`: every table, also those added later."""

    name = serializers.CharField(max_length=100)
    tables = SubscriberTableSerializer(many=True, required=False)


class PositionSerializer(serializers.Serializer[Any]):
    """How far a subscriber is in a table. `changes_behind` and `bytes_behind` are about as many;
    `seconds_behind`: the age of the first change that it has not read. `state`: `ok`,
    `fell-behind`, `copied-again` or `not-copied`."""

    schema = serializers.CharField()
    table = serializers.CharField()
    checkpoint = serializers.CharField()
    state = serializers.ChoiceField(["ok", "fell-behind", "copied-again", "not-copied"])
    changes_behind = serializers.IntegerField()
    bytes_behind = serializers.IntegerField()
    seconds_behind = serializers.FloatField()


class SubscriberSerializer(serializers.Serializer[Any]):
    """A subscriber, with its lag: the greatest of its tables. `tables` is empty for all tables."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    tables = SubscriberTableSerializer(many=True)
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    seen_at = serializers.DateTimeField(allow_null=True)
    changes_behind = serializers.IntegerField()
    bytes_behind = serializers.IntegerField()
    seconds_behind = serializers.FloatField()
    positions = PositionSerializer(many=True)


class TableChoiceSerializer(serializers.Serializer[Any]):
    """Parameters that every reading request has."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False, default="")
    table = serializers.CharField(max_length=255, trim_whitespace=False, default="")
    checkpoint = serializers.CharField(
        max_length=100_000, default="",
        help_text="The checkpoint of the answer before. It is recorded. Without it: the recorded "
        "one.",
    )  # fmt: skip
    record = serializers.ChoiceField(
        RECORDS, default="AFTER",
        help_text="CHANGE: the key and the changed values; AFTER: the row after the change; ALL: "
        "the rows before and after it.",
    )  # fmt: skip


class ChangesQuerySerializer(TableChoiceSerializer):
    """Which changes."""

    wait = serializers.FloatField(
        min_value=0, max_value=reading.WAIT_MOST, default=0,
        help_text="Wait so many seconds for a change where there is none.",
    )  # fmt: skip
    limit = serializers.IntegerField(
        min_value=1, max_value=reading.ROWS_MOST, default=reading.ROWS_DEFAULT,
        help_text="At most so many changes.",
    )  # fmt: skip
    encoding = serializers.ChoiceField(
        list(_ENCODINGS), default="json", help_text="arrow: of one table only."
    )


class SnapshotQuerySerializer(TableChoiceSerializer):
    """The rows of which table."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    encoding = serializers.ChoiceField(list(_ENCODINGS), default="json")


def subscriber_of(pk: Any, name: str) -> Subscriber:
    """The subscriber with this name; Http404."""
    found = Subscriber.objects.select_related("replicator")
    return get_object_or_404(found, replicator=pk, name=name)


class Subscribers(RestView):
    """The subscribers of a replicator."""

    @extend_schema(
        summary="A replicator's subscribers, with their lag",
        tags=_TAGS,
        operation_id="subscribers_list",
        responses={200: SubscriberSerializer(many=True), 404: ErrorSerializer},
    )
    def get(self, request: Request, pk: str) -> Response:
        replicator = get_object_or_404(Replicator, pk=pk)
        shown = subscribers_shown(replicator, timezone.now())
        return Response(SubscriberSerializer(shown, many=True).data)

    @extend_schema(
        summary="Register a subscriber",
        description="Changes from now on are kept for it. Take a snapshot first where it needs the "
        "rows that are there already.",
        tags=_TAGS,
        operation_id="subscribers_register",
        request=SubscriberRegisterSerializer,
        responses={201: SubscriberSerializer, **_ERRORS},
    )
    def post(self, request: Request, pk: str) -> Response:
        data = valid(SubscriberRegisterSerializer, request.data)
        replicator = get_object_or_404(Replicator, pk=pk)
        made = subscriber_register(replicator=replicator, actor=person(request), **data)
        (shown,) = subscribers_shown(replicator, timezone.now(), only=made)
        return Response(SubscriberSerializer(shown).data, status=status.HTTP_201_CREATED)


class OneSubscriber(RestView):
    """A subscriber."""

    @extend_schema(
        summary="A subscriber, with its lag",
        tags=_TAGS,
        operation_id="subscribers_retrieve",
        responses={200: SubscriberSerializer, 404: ErrorSerializer},
    )
    def get(self, request: Request, pk: str, name: str) -> Response:
        found = subscriber_of(pk, name)
        (shown,) = subscribers_shown(found.replicator, timezone.now(), only=found)
        return Response(SubscriberSerializer(shown).data)

    @extend_schema(
        summary="Remove a subscriber",
        description="Nothing is kept for it any more.",
        tags=_TAGS,
        operation_id="subscribers_remove",
        responses={204: None, 404: ErrorSerializer},
    )
    def delete(self, request: Request, pk: str, name: str) -> Response:
        subscriber_remove(subscriber=subscriber_of(pk, name), actor=person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class _Reading(RestView):
    """A view that gives rows."""

    permission_classes = (ReadRows,)
    content_negotiation_class = AnyAccept


class SubscriberChanges(_Reading):
    """The changes that a subscriber has not read yet."""

    @asks(ChangesQuerySerializer)
    @extend_schema(
        summary="GetChanges: what a subscriber has not read yet",
        description="JSON lines of the types `change`, `resolved` (everything committed before is "
        "read), `snapshot_needed` (`subscriber:fell-behind` or `subscriber:copied-again`), and "
        "last `checkpoint`. Give that checkpoint with the next request: it says that everything "
        "before was handled, and is recorded. With `encoding=arrow`: an Arrow stream of one table, "
        "the checkpoint in the header `X-Checkpoint`, `X-Has-More: true` where there is more; 409 "
        "where a snapshot is needed.",
        tags=_TAGS,
        operation_id="subscribers_changes",
        responses={
            (200, LINES): OpenApiTypes.STR,
            (200, ARROW): OpenApiTypes.BINARY,
            **_ERRORS,
        },
    )
    def get(self, request: Request, pk: str, name: str) -> HttpResponse:
        query = asked(ChangesQuerySerializer, request)
        question = reading.question(
            subscriber_of(pk, name), schema=query["schema"], table=query["table"],
            checkpoint=query["checkpoint"], limit=query["limit"],
            is_arrow=query["encoding"] == "arrow",
        )  # fmt: skip
        found = reading.answer(question, wait=query["wait"])
        kind = _ENCODINGS[query["encoding"]]
        if question.is_arrow:
            body, headers = reading.as_arrow(found)
            return HttpResponse(body, content_type=kind, headers=headers)
        return HttpResponse(reading.as_lines(found, query["record"]), content_type=kind)


class SubscriberEvents(_Reading):
    """The same as server-sent events."""

    @asks(TableChoiceSerializer)
    @extend_schema(
        summary="The changes as server-sent events",
        description="Events `change`, `resolved`, `snapshot_needed` and `checkpoint`, with the "
        "lines of GetChanges as data. The id of an event is a checkpoint: a browser that comes "
        "back sends it as `Last-Event-ID`. A stream ends after some minutes, and at once where too "
        "many wait already; come back then.",
        tags=_TAGS,
        operation_id="subscribers_events",
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            **_ERRORS,
        },
    )
    def get(self, request: Request, pk: str, name: str) -> StreamingHttpResponse:
        query = asked(TableChoiceSerializer, request)
        question = reading.question(
            subscriber_of(pk, name), schema=query["schema"], table=query["table"],
            checkpoint=query["checkpoint"] or request.headers.get("Last-Event-ID", ""),
            limit=reading.ROWS_DEFAULT,
        )  # fmt: skip
        response = StreamingHttpResponse(
            reading.events(question, query["record"]), content_type="text/event-stream"
        )
        response["Cache-Control"] = "no-store"
        response["X-Accel-Buffering"] = "no"
        return response


class SubscriberSnapshot(_Reading):
    """The rows of a table."""

    @asks(SnapshotQuerySerializer)
    @extend_schema(
        summary="GetSnapshot: the rows of a table, and the checkpoint where its changes go on",
        description="The newest rows, or those at a `checkpoint` that an answer gave. JSON lines: "
        "one of the type `snapshot` with the checkpoint, then rows as changes with the operation "
        "`read`, and last `checkpoint`. A stream without that last line was cut off. With "
        "`encoding=arrow` the checkpoint is in the header `X-Checkpoint`.",
        tags=_TAGS,
        operation_id="subscribers_snapshot",
        responses={
            (200, LINES): OpenApiTypes.STR,
            (200, ARROW): OpenApiTypes.BINARY,
            **_ERRORS,
        },
    )
    def get(self, request: Request, pk: str, name: str) -> StreamingHttpResponse:
        query = asked(SnapshotQuerySerializer, request)
        found = reading.snapshot_asked(
            subscriber_of(pk, name), schema=query["schema"], name=query["table"],
            checkpoint=query["checkpoint"],
        )  # fmt: skip
        kind = _ENCODINGS[query["encoding"]]
        if query["encoding"] == "arrow":
            body, headers = found.as_arrow()
            return StreamingHttpResponse(body, content_type=kind, headers=headers)
        return StreamingHttpResponse(found.as_lines(query["record"]), content_type=kind)


_ONE = "replicators/<uuid:pk>/subscribers/"
urlpatterns = [
    path(_ONE, Subscribers.as_view(), name="subscribers"),
    path(f"{_ONE}<str:name>/", OneSubscriber.as_view(), name="subscriber"),
    path(f"{_ONE}<str:name>/changes/", SubscriberChanges.as_view(), name="subscriber-changes"),
    path(f"{_ONE}<str:name>/events/", SubscriberEvents.as_view(), name="subscriber-events"),
    path(f"{_ONE}<str:name>/snapshot/", SubscriberSnapshot.as_view(), name="subscriber-snapshot"),
]
