"""REST: changefeeds by statements."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from assessments.api.views import ASKED
from drafts.api import errors as _errors  # noqa: F401  registers the answers
from drafts.statements.errors import StatementError
from drafts.statements.services import Outcome, statement_run
from drafts.statements.shown import statement_of
from drafts.statements.tokens import LONGEST
from replicators.api.errors import Answer, answers
from replicators.api.pagination import Pages
from replicators.api.permissions import require_scope
from replicators.api.rest import RestView
from replicators.api.serializers import ErrorSerializer, StrictMixin, valid
from replicators.people import person
from replicators.permissions import can_view
from runners import selectors
from runners.api.serializers import ReplicatorLineSerializer
from runners.shown import ReplicatorView

ACTS = ("created", "paused", "resumed", "dropped", "altered", "shown")
_STATUS = {"created": 201, "paused": 202, "resumed": 202, "dropped": 202}
_TAGS = ["changefeeds"]


@answers(StatementError)
def _statement(error: StatementError) -> Answer:
    fields = {
        "statement": [error.reason],
        "line": [str(error.line)],
        "column": [str(error.column)],
    }
    return Answer(400, "statement", str(error), fields)


class StatementSerializer(StrictMixin, serializers.Serializer[Any]):
    """A statement to carry out. `source`: the name of a replicator or draft whose source a CREATE
    without FROM SOURCE uses."""

    statement = serializers.CharField(max_length=LONGEST, trim_whitespace=False)
    source = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)  # type: ignore[assignment]


class FeedSerializer(ReplicatorLineSerializer):
    """A line of SHOW CHANGEFEEDS. `statement` makes the same replicator; it is empty where a plugin
    is gone. Secrets in it are the mask."""

    statement = serializers.SerializerMethodField()

    def get_statement(self, view: ReplicatorView) -> str:
        return statement_of(view.replicator)


class OutcomeSerializer(serializers.Serializer[Any]):
    """What a statement did. `statement`: after CREATE, ALTER and SHOW CREATE, the one that makes
    the replicator. `changefeeds`: after SHOW CHANGEFEEDS."""

    act = serializers.ChoiceField(ACTS)
    text = serializers.CharField()
    id = serializers.UUIDField(allow_null=True)
    name = serializers.CharField(allow_null=True)
    statement = serializers.CharField(allow_blank=True)
    changefeeds = FeedSerializer(many=True)


class MayLook(BasePermission):
    """Allows those who may see replicators. Each statement asks for the right that it needs."""

    message = "Your user may not see replicators. Ask for the group viewer."

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        require_scope(request)
        return can_view(request.user)


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """The form of REST."""
    row = outcome.replicator
    return {
        "act": outcome.act,
        "text": outcome.text,
        "id": row and str(row.pk),
        "name": row and row.name,
        "statement": outcome.statement,
        "changefeeds": FeedSerializer(outcome.feeds, many=True).data,
    }


class Changefeeds(RestView):
    """Changefeeds are replicators that statements make, pause, change and show."""

    permission_classes = (MayLook,)
    pagination_class = Pages
    action = "list"

    @extend_schema(
        operation_id="changefeeds_list",
        summary="List the changefeeds",
        description="Every replicator is one, with the statement that makes it.",
        tags=_TAGS,
        responses={200: FeedSerializer(many=True), 400: ErrorSerializer},
    )
    def get(self, request: Request) -> Response:
        pages = Pages()
        found: Any = selectors.replicators_found()
        page = pages.paginate_queryset(found, request, self)
        return pages.get_paginated_response(FeedSerializer(page, many=True).data)

    @extend_schema(
        operation_id="changefeeds_statement",
        summary="Carry out a statement",
        description=(
            "CREATE, PAUSE, RESUME, DROP, SHOW and ALTER CHANGEFEED; CREATE and DROP CDC. CREATE "
            "makes an ordinary replicator: it is assessed, and 409 with the problems where one is "
            "an ERROR. A statement that can't be read is 400 with `fields.line` and "
            "`fields.column`; the message shows the line with a caret. SHOW needs the right to "
            "view, everything else the right to edit; with the right to make feeds, one's own "
            "feeds (403)."
        ),
        tags=_TAGS,
        request=StatementSerializer,
        responses={
            200: OutcomeSerializer,
            201: OutcomeSerializer,
            202: OutcomeSerializer,
            400: ErrorSerializer,
            403: ErrorSerializer,
            409: ErrorSerializer,
            **ASKED,
        },
        examples=[
            OpenApiExample(
                "Every change of a table into files",
                value={
                    "statement": "CREATE CHANGEFEED orders_files FOR TABLE shop.orders "
                    "INTO 'files:/data/changes?format=parquet'",
                    "source": "shop to lakehouse",
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        data = valid(StatementSerializer, request.data)
        outcome = statement_run(
            text=data["statement"], actor=person(request), source=data["source"]
        )
        answer = Response(outcome_json(outcome), status=_STATUS.get(outcome.act, 200))
        if outcome.act == "created" and outcome.replicator is not None:
            answer["Location"] = reverse("api:replicator-detail", args=[outcome.replicator.pk])
        return answer
