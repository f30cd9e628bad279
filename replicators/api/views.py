"""REST: the plugins that are there."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from replicators.api.serializers import ErrorSerializer, PluginDetailSerializer, PluginSerializer
from replicators.config import ROLES, plugin_of
from replicators.connectors.errors import ReplicationError
from replicators.selectors import plugins


class PluginList(APIView):
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


class PluginDetail(APIView):
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
