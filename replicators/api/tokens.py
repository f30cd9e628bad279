"""REST: one's own tokens; administrators see and revoke everybody's."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from replicators.api.pagination import Pages
from replicators.api.permissions import SignedIn
from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer, StrictMixin, valid
from replicators.models import ApiToken, Scope
from replicators.people import person
from replicators.permissions import can_revoke
from replicators.tokens import LONGEST_NAME, token_create, token_revoke

_TAGS = ["people"]


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token, without its text. `expires_at` null: it never ends."""

    user = serializers.CharField(source="user.username")

    class Meta:
        model = ApiToken
        fields = ("id", "user", "name", "scope", "created_at", "expires_at", "last_used_at")
        read_only_fields = fields


class TokenMakeSerializer(StrictMixin, serializers.Serializer[Any]):
    """A token to make."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    scope = serializers.ChoiceField(Scope.choices, default=Scope.WRITE)
    days = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=36_500,
        help_text="After how many days it ends, within REPLICATOR_TOKEN_MAX_SECONDS; left out: "
        "REPLICATOR_TOKEN_SECONDS. 0: never, "
        "where the setting lets it.",
    )


class TokenMadeSerializer(TokenSerializer):
    """A token that was made. `token` is its text, shown this once."""

    token = serializers.CharField()

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")  # type: ignore[assignment]


class TokenListQuerySerializer(serializers.Serializer[Any]):
    """Whose tokens are listed."""

    user = serializers.CharField(required=False, help_text="The user's name.")


class TokenViewSet(RestView, GenericViewSet[ApiToken]):
    """Tokens. An answer that holds a token's text is not kept, so there is no idempotency key."""

    queryset = ApiToken.objects.all()
    serializer_class = TokenSerializer
    pagination_class = Pages
    permission_classes = (SignedIn,)
    lookup_value_converter = "int"
    keeps_answers = False

    def get_queryset(self) -> QuerySet[ApiToken]:
        found = ApiToken.objects.select_related("user")
        user = person(self.request)
        return found if can_revoke(user) else found.filter(user=user)

    @asks(TokenListQuerySerializer)
    @extend_schema(
        summary="List the tokens",
        description="One's own; everybody's to administrators.",
        tags=_TAGS,
        responses={200: TokenSerializer(many=True), 400: ErrorSerializer},
    )
    def list(self, request: Request) -> Response:
        query = asked(TokenListQuerySerializer, request)
        found = self.get_queryset()
        if "user" in query:
            found = found.filter(user__username=query["user"])
        page = self.paginate_queryset(found)
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        summary="Make a token of one's own",
        description="Its text is in this one answer and nowhere else. A token that makes another "
        "one gives it no longer life and no wider "
        "scope than it has.",
        tags=_TAGS,
        request=TokenMakeSerializer,
        responses={201: TokenMadeSerializer, 400: ErrorSerializer, 403: ErrorSerializer},
    )
    def create(self, request: Request) -> Response:
        data = valid(TokenMakeSerializer, request.data)
        maker = request.auth if isinstance(request.auth, ApiToken) else None
        token, text = token_create(user=person(request), maker=maker, **data)
        body = {**TokenSerializer(token).data, "token": text}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Revoke a token",
        description="One's own; anybody's by administrators. It is refused from then on.",
        tags=_TAGS,
        responses={204: None, 403: ErrorSerializer, 404: ErrorSerializer},
    )
    def destroy(self, request: Request, pk: int) -> Response:
        token = self.get_object()
        is_own = token.user_id == person(request).pk
        token_revoke(token=token, reason="" if is_own else "by an administrator")
        return Response(status=status.HTTP_204_NO_CONTENT)
