"""REST: the audit trail, by cursor, for administrators and whoever was given the right to look at
it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer
from replicators.audit import AuditEntry, How
from replicators.audit_reading import Asked, entries_after
from replicators.permissions import can_audit


class MayAudit(BasePermission):
    """Administrators."""

    message = (
        "The audit trail is for administrators, and for whoever was given the right to "
        "view audit entries."
    )

    def has_permission(self, request: Request, view: APIView) -> bool:
        return can_audit(request.user)


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """One action. `old_values` and `new_values` hold only what changed; secrets are masked.
    `through`: the name of the token or command."""

    how = serializers.ChoiceField([str(h) for h in How.values])
    old_values = serializers.DictField()
    new_values = serializers.DictField()

    class Meta:
        model = AuditEntry
        fields = (
            "id", "at", "actor_id", "actor", "how", "through", "act", "object_kind", "object_id",
            "object_name",
            "old_values", "new_values", "address", "request_id",
        )  # fmt: skip
        read_only_fields = fields


class AuditSerializer(serializers.Serializer[Any]):
    """Rows, oldest first; `after` is the cursor of the next request."""

    after = serializers.IntegerField()
    entries = AuditEntrySerializer(many=True)


class AuditQuerySerializer(serializers.Serializer[Any]):
    """Which rows are asked for; all that is said must fit."""

    after = serializers.IntegerField(
        default=0, min_value=0, max_value=2**63 - 1, help_text="Only rows after this cursor."
    )
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)
    actor = serializers.CharField(required=False, help_text="The user's name.")
    act = serializers.CharField(required=False, help_text="Such as `replicator_deleted`.")
    kind = serializers.CharField(required=False, help_text="The kind of object, such as `draft`.")
    object = serializers.CharField(
        required=False, help_text="The object's id, or a part of its name."
    )
    since = serializers.DateTimeField(required=False, help_text="Only rows of then or later.")
    until = serializers.DateTimeField(required=False, help_text="Only rows of before then.")


class AuditTrail(RestView):
    """Who did what."""

    permission_classes = (MayAudit,)

    @asks(AuditQuerySerializer)
    @extend_schema(
        summary="The audit trail, by cursor",
        description="Oldest first. Who asks again with the `after` of the last answer gets every "
        "row once. With PostgreSQL as the program's database a row appears half a minute after its "
        "action, when no transaction can bring an older one any more.",
        tags=["audit"],
        operation_id="audit_list",
        responses={200: AuditSerializer, 400: ErrorSerializer, 403: ErrorSerializer},
    )
    def get(self, request: Request) -> Response:
        query = asked(AuditQuerySerializer, request)
        after, limit = query.pop("after"), query.pop("limit")
        rows = entries_after(Asked(**query), after, limit)
        reported = {"after": rows[-1].pk if rows else after, "entries": rows}
        return Response(AuditSerializer(reported).data)
