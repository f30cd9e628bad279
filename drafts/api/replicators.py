"""REST: deployed replicators. A change of their definition must be assessed first."""

from __future__ import annotations

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from assessments.api.serializers import ConfigSerializer
from assessments.api.views import ASKED
from drafts.api import errors as _errors  # noqa: F401  registers the answers
from drafts.api.stored import StoredServers
from drafts.services import replicator_make
from replicators.api.preconditions import has_condition, require_match, tagged
from replicators.api.serializers import (
    ErrorSerializer,
    ReplicatorSerializer,
    ReplicatorUpdateSerializer,
    valid,
)
from replicators.people import person
from runners.api.views import ReplicatorViewSet
from runners.definition import replicator_change


class DeployedViewSet(StoredServers, ReplicatorViewSet):
    """Replicators: definition, state, actions."""

    @extend_schema(
        summary="Change a replicator's name, connections or options",
        description=(
            "What is left out stays; a secret has to be sent again (400) where the address, the "
            "user or the TLS mode that it belongs to "
            "changes. Kinds, tables and the target's place can't be changed. Name, description "
            "and some options "
            "apply at once; connections and the other options when it starts next (`restart` "
            "brings that about). With another "
            "connection a replicator that waits after a failure is tried at once. 409 where the "
            "source's log does not go on at "
            "the new address, or where a table can't be copied in the new mode. With `If-Match` "
            "(the `ETag` that was read): 412 "
            "where somebody changed it meanwhile."
        ),
        tags=["replicators"],
        request=ReplicatorUpdateSerializer,
        responses={
            200: ReplicatorSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            409: ErrorSerializer,
            412: ErrorSerializer,
        },
        examples=[
            OpenApiExample(
                "The server has moved",
                value={
                    "source_params": {"host": "db2.example", "password": "entered again"},
                    "restart": True,
                },
                request_only=True,
            )
        ],
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        data = valid(ReplicatorUpdateSerializer, request.data)
        replicator = self.get_object()
        require_match(request, ReplicatorSerializer(replicator).data)
        seen = replicator.updated_at if has_condition(request) else None
        change = replicator_change(
            replicator=replicator, actor=person(request), seen_at=seen, **data
        )
        return tagged(request, ReplicatorSerializer(change.replicator).data)

    @extend_schema(
        summary="Make a replicator in one call",
        description=(
            "As a draft that is made and deployed at once: the body is what `export/` gives, "
            "with the secrets. It is assessed; 409 with "
            "the problems where one is an ERROR, and nothing is stored then. It is started."
        ),
        tags=["replicators"],
        request=ConfigSerializer,
        responses={
            201: ReplicatorSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **ASKED,
        },
    )
    def create(self, request: Request) -> Response:
        data = valid(ConfigSerializer, request.data)
        made = replicator_make(actor=person(request), **data)
        where = reverse("api:replicator-detail", args=[made.pk])
        answer = tagged(request, ReplicatorSerializer(made).data)
        answer.status_code = status.HTTP_201_CREATED
        answer["Location"] = where
        return answer
