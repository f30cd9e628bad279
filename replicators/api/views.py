"""REST: where to begin, and the plugins that are there."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from replicators.api.rest import RestView
from replicators.api.serializers import (
    ErrorSerializer,
    IndexSerializer,
    PluginDetailSerializer,
    PluginSerializer,
)
from replicators.config import ROLES, plugin_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.selectors import plugins

_BEGINNINGS = {
    "replicators": "replicator-list",
    "drafts": "draft-list",
    "audit": "audit",
    "tokens": "token-list",
    "users": "user-list",
    "plugins": "plugins",
    "connection_test": "connection-test",
    "source_tables": "source-tables",
    "source_table": "source-table",
    "assess": "assess",
}


class Index(RestView):
    """Where to begin."""

    @extend_schema(
        summary="The addresses to begin with",
        tags=["index"],
        operation_id="index",
        responses=IndexSerializer,
    )
    def get(self, request: Request) -> Response:
        links = {
            name: request.build_absolute_uri(reverse(f"api:{route}"))
            for name, route in _BEGINNINGS.items()
        }
        schema = request.build_absolute_uri(reverse("api-schema"))
        return Response({"version": "1", "schema": schema, "links": links})


class PluginList(RestView):
    """Sources and targets."""

    @extend_schema(
        summary="List the plugins",
        tags=["plugins"],
        operation_id="plugins_list",
        responses=PluginSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        found: list[Any] = []
        for role in ROLES:
            found += PluginSerializer(plugins(role), many=True, context={"role": role}).data
        return Response(found)


class PluginDetail(RestView):
    """One plugin with its parameters."""

    @extend_schema(
        summary="A plugin and its parameters",
        tags=["plugins"],
        operation_id="plugins_retrieve",
        responses={200: PluginDetailSerializer, 404: ErrorSerializer},
    )
    def get(self, request: Request, role: str, name: str) -> Response:
        if role not in ROLES:
            raise Http404
        try:
            plugin = plugin_of(role, name)
        except ReplicationError as err:
            raise Http404 from err
        return Response(PluginDetailSerializer(plugin, context={"role": role}).data)
