"""REST: drafts, which become replicators when they are deployed."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from assessments.api.serializers import ReportSerializer
from drafts import services
from drafts.api import errors as _errors  # noqa: F401  registers the answers
from drafts.api.serializers import DraftSerializer, DraftUpdateSerializer, DraftWriteSerializer
from drafts.api.stored import StoredServers
from drafts.models import Draft
from replicators.api.pagination import Pages
from replicators.api.serializers import ErrorSerializer, ReplicatorSerializer, valid
from replicators.people import person

_TAGS = ["drafts"]
_CHANGED = {
    200: DraftSerializer,
    400: ErrorSerializer,
    404: ErrorSerializer,
    409: ErrorSerializer,
}


@extend_schema_view(
    list=extend_schema(summary="List the drafts", tags=_TAGS),
    retrieve=extend_schema(summary="A draft", tags=_TAGS),
)
class DraftViewSet(StoredServers, mixins.ListModelMixin, mixins.RetrieveModelMixin):
    """Drafts are everybody's who may edit."""

    serializer_class = DraftSerializer
    pagination_class = Pages
    queryset = Draft.objects.all()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Draft]:
        drafts = Draft.objects.all()
        return drafts.filter(replicator_id=None) if self.action == "list" else drafts

    @extend_schema(
        summary="Make a draft",
        tags=_TAGS,
        request=DraftWriteSerializer,
        responses={201: DraftSerializer, 400: ErrorSerializer},
    )
    def create(self, request: Request) -> Response:
        data = valid(DraftWriteSerializer, request.data)
        draft = services.draft_create(actor=person(request), **data)
        return Response(DraftSerializer(draft).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change parts of a draft",
        description="`version` must be that of the draft which was read: 409 where it is older.",
        tags=_TAGS,
        request=DraftUpdateSerializer,
        responses=_CHANGED,
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        draft = self.get_object()
        data = valid(DraftUpdateSerializer, request.data)
        draft = services.draft_update(draft=draft, version=data.pop("version"), **data)
        return Response(DraftSerializer(draft).data)

    @extend_schema(
        summary="Delete a draft", tags=_TAGS, responses={204: None, 404: ErrorSerializer}
    )
    def destroy(self, request: Request, pk: str) -> Response:
        services.draft_delete(draft=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Assess a draft",
        tags=_TAGS,
        request=None,
        responses={200: ReportSerializer, 400: ErrorSerializer, 502: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def assess(self, request: Request, pk: str) -> Response:
        return Response(services.draft_assess(draft=self.get_object()).to_json())

    @extend_schema(
        summary="Deploy a draft",
        description=(
            "Assesses it again; 409 with the problems where one is an ERROR. The replicator is made and started. "
            "Deploying twice gives the one replicator."
        ),
        tags=_TAGS,
        request=None,
        responses={
            201: ReplicatorSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            502: ErrorSerializer,
        },
    )
    @action(detail=True, methods=["post"])
    def deploy(self, request: Request, pk: str) -> Response:
        made = services.draft_deploy(draft=self.get_object(), actor=person(request))
        return Response(ReplicatorSerializer(made).data, status=status.HTTP_201_CREATED)
