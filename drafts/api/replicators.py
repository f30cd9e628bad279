"""REST: replicators that were deployed, with the change of their definition, which has to be assessed first."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from drafts.api import errors as _errors  # noqa: F401  registers the answers
from drafts.api.stored import StoredServers
from drafts.definition import replicator_change
from replicators.api.serializers import (
    ErrorSerializer,
    ReplicatorSerializer,
    ReplicatorUpdateSerializer,
    valid,
)
from replicators.connectors.params import MASK
from replicators.people import person
from runners.api.views import ReplicatorViewSet


class DeployedViewSet(StoredServers, ReplicatorViewSet):
    """Replicators: definition, state, acts."""

    @extend_schema(
        summary="Change a replicator's name, connections or options",
        description=(
            "What is left out stays. Kinds, tables and the target's place can't be changed. Name, description and some options "
            "apply at once; connections and the other options when it starts next (`restart` brings that about). With another "
            "connection a replicator that waits after a failure is tried at once. 409 where the source's log does not go on at "
            "the new address, or where a table can't be copied in the new mode."
        ),
        tags=["replicators"],
        request=ReplicatorUpdateSerializer,
        responses={
            200: ReplicatorSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            409: ErrorSerializer,
        },
        examples=[
            OpenApiExample(
                "The server has moved",
                value={
                    "source_params": {"host": "db2.example", "password": MASK},
                    "restart": True,
                },
                request_only=True,
            )
        ],
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        data = valid(ReplicatorUpdateSerializer, request.data)
        change = replicator_change(replicator=self.get_object(), actor=person(request), **data)
        return Response(ReplicatorSerializer(change.replicator).data)
