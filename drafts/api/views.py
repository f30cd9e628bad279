"""REST: drafts, which become replicators when they are deployed."""

from __future__ import annotations

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from assessments.api.serializers import ReportSerializer
from assessments.api.views import ASKED
from drafts import services
from drafts.api import errors as _errors  # noqa: F401  registers the answers
from drafts.api.serializers import (
    DraftListQuerySerializer,
    DraftSerializer,
    DraftUpdateSerializer,
    DraftWriteSerializer,
)
from drafts.api.stored import StoredServers
from drafts.models import Draft
from drafts.selectors import drafts_found
from replicators.api.pagination import Pages
from replicators.api.preconditions import require_match, tagged
from replicators.api.rest import asked, asks
from replicators.api.serializers import ErrorSerializer, ReplicatorSerializer, valid
from replicators.people import person
from replicators.permissions import require_make

_TAGS = ["drafts"]
_CHANGED = {
    200: DraftSerializer,
    400: ErrorSerializer,
    404: ErrorSerializer,
    409: ErrorSerializer,
    412: ErrorSerializer,
}


class DraftViewSet(StoredServers):
    """Drafts are everybody's who may edit. Makers of feeds have their own."""

    serializer_class = DraftSerializer
    pagination_class = Pages
    queryset = Draft.objects.all()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Draft]:
        return Draft.objects.all()

    @asks(DraftListQuerySerializer)
    @extend_schema(
        summary="List the drafts",
        tags=_TAGS,
        responses={200: DraftSerializer(many=True), 400: ErrorSerializer},
    )
    def list(self, request: Request) -> Response:
        query = asked(DraftListQuerySerializer, request)
        page = self.paginate_queryset(drafts_found(**query))
        return self.get_paginated_response(DraftSerializer(page, many=True).data)

    @extend_schema(
        summary="Make a draft",
        tags=_TAGS,
        request=DraftWriteSerializer,
        responses={201: DraftSerializer, 400: ErrorSerializer},
    )
    def create(self, request: Request) -> Response:
        data = valid(DraftWriteSerializer, request.data)
        draft = services.draft_create(actor=person(request), **data)
        where = reverse("api:draft-detail", args=[draft.pk])
        data = DraftSerializer(draft).data
        return Response(data, status=status.HTTP_201_CREATED, headers={"Location": where})

    @extend_schema(
        summary="Change parts of a draft",
        description="`version` must be that of the draft which was read: 409 where it is older.",
        tags=_TAGS,
        request=DraftUpdateSerializer,
        responses=_CHANGED,
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        draft = self.get_object()
        require_match(request, DraftSerializer(draft).data)
        data = valid(DraftUpdateSerializer, request.data)
        require_make(person(request), data.get("target_kind", ""))
        draft = services.draft_update(draft=draft, version=data.pop("version"), **data)
        return tagged(request, DraftSerializer(draft).data)

    @extend_schema(
        summary="A draft",
        description="Its `ETag` stands for this very answer: see `If-Match`.",
        tags=_TAGS,
        responses={200: DraftSerializer, 404: ErrorSerializer},
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        return tagged(request, DraftSerializer(self.get_object()).data)

    @extend_schema(
        summary="Delete a draft",
        tags=_TAGS,
        responses={204: None, 404: ErrorSerializer, 412: ErrorSerializer},
    )
    def destroy(self, request: Request, pk: str) -> Response:
        draft = self.get_object()
        require_match(request, DraftSerializer(draft).data)
        services.draft_delete(draft=draft)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Assess a draft",
        tags=_TAGS,
        request=None,
        responses={200: ReportSerializer, 400: ErrorSerializer, **ASKED},
    )
    @action(detail=True, methods=["post"])
    def assess(self, request: Request, pk: str) -> Response:
        return Response(services.draft_assess(draft=self.get_object()).to_json())

    @extend_schema(
        summary="Deploy a draft",
        description=(
            "Assesses it again; 409 with the problems where one is an ERROR. The replicator is "
            "made and started. "
            "Deploying twice gives the one replicator."
        ),
        tags=_TAGS,
        request=None,
        responses={
            201: ReplicatorSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **ASKED,
        },
    )
    @action(detail=True, methods=["post"])
    def deploy(self, request: Request, pk: str) -> Response:
        made = services.draft_deploy(draft=self.get_object(), actor=person(request))
        where = reverse("api:replicator-detail", args=[made.pk])
        data = ReplicatorSerializer(made).data
        return Response(data, status=status.HTTP_201_CREATED, headers={"Location": where})
