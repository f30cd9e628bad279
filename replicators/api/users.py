"""REST: users, for administrators."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from replicators.accounts import user_create, user_update
from replicators.api.pagination import Pages
from replicators.api.permissions import Administrator
from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer, StrictMixin, valid
from replicators.people import person

_TAGS = ["people"]
_ERRORS = {400: ErrorSerializer, 403: ErrorSerializer}


class UserSerializer(serializers.ModelSerializer[User]):
    """A user. `groups`: viewer may look, feed-maker may also make feeds, editor may also change
    everything. `is_administrator` is changed on the administration pages alone."""

    groups = serializers.SerializerMethodField()
    is_administrator = serializers.BooleanField(source="is_superuser")

    class Meta:
        model = User
        fields = (
            "id", "username", "is_active", "is_administrator", "groups", "date_joined",
            "last_login",
        )  # fmt: skip
        read_only_fields = fields

    def get_groups(self, user: User) -> list[str]:
        return sorted(g.name for g in user.groups.all())


class UserUpdateSerializer(StrictMixin, serializers.Serializer[Any]):
    """A change; what is left out stays. With another password the user's sessions and tokens
    end."""

    is_active = serializers.BooleanField(required=False)
    groups = serializers.ListField(child=serializers.CharField(max_length=150), required=False)
    password = serializers.CharField(
        max_length=500, required=False, write_only=True, trim_whitespace=False
    )


class UserMakeSerializer(UserUpdateSerializer):
    """A user to make."""

    username = serializers.CharField(max_length=150, trim_whitespace=False)
    password = serializers.CharField(max_length=500, write_only=True, trim_whitespace=False)


class UserListQuerySerializer(serializers.Serializer[Any]):
    """Which users are listed."""

    username = serializers.CharField(required=False, help_text="The whole name.")


class UserViewSet(RestView, GenericViewSet[User]):
    """Users."""

    queryset = User.objects.all()
    serializer_class = UserSerializer
    pagination_class = Pages
    permission_classes = (Administrator,)
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[User]:
        return User.objects.prefetch_related("groups").order_by("username")

    @asks(UserListQuerySerializer)
    @extend_schema(
        summary="List the users",
        tags=_TAGS,
        responses={200: UserSerializer(many=True), **_ERRORS},
    )
    def list(self, request: Request) -> Response:
        query = asked(UserListQuerySerializer, request)
        page = self.paginate_queryset(self.get_queryset().filter(**query))
        return self.get_paginated_response(UserSerializer(page, many=True).data)

    @extend_schema(
        summary="A user",
        tags=_TAGS,
        responses={200: UserSerializer, 403: ErrorSerializer, 404: ErrorSerializer},
    )
    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(UserSerializer(self.get_object()).data)

    @extend_schema(
        summary="Make a user",
        tags=_TAGS,
        request=UserMakeSerializer,
        responses={201: UserSerializer, **_ERRORS},
    )
    def create(self, request: Request) -> Response:
        data = valid(UserMakeSerializer, request.data)
        user = user_create(actor=person(request), **data)
        where = reverse("api:user-detail", args=[user.pk])
        body = UserSerializer(user).data
        return Response(body, status=status.HTTP_201_CREATED, headers={"Location": where})

    @extend_schema(
        summary="Change a user",
        tags=_TAGS,
        request=UserUpdateSerializer,
        responses={200: UserSerializer, 404: ErrorSerializer, **_ERRORS},
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        data = valid(UserUpdateSerializer, request.data)
        user = user_update(actor=person(request), user=self.get_object(), **data)
        return Response(UserSerializer(self.get_queryset().get(pk=user.pk)).data)
