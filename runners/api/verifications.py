"""REST: verifications of a replicator, their differing rows, repairs, the schedule. Values of rows
are for people who may edit; others get the mask."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer, StrictMixin, valid
from replicators.connectors.model.schema import TableId
from replicators.models import Replicator
from replicators.people import person
from replicators.permissions import can_edit
from runners.api.serializers import TableErrorSerializer, TableNameSerializer
from runners.engine.verify.report import Outcome
from runners.shown import error_shown, reported
from runners.states import RepairState, VerificationState
from runners.verifications import Verification, VerifiedTable
from runners.verifying import selectors
from runners.verifying.rows import row_shown
from runners.verifying.services import (
    ROWS_PER_SECOND_MOST,
    repair_ask,
    verification_cancel,
    verification_start,
    verify_schedule_set,
)

_TAGS = ["verifications"]
_MISSING = {404: ErrorSerializer}
LISTED = 200
_KINDS = ("missing", "extra", "different", "unsettled")
_OUTCOMES = [str(o) for o in Outcome]


def _throttle(**more: Any) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1,
        max_value=ROWS_PER_SECOND_MOST,
        allow_null=True,
        help_text="Rows of the source that are read in a second, at most. null: no limit.",
        **more,
    )


class VerificationStartSerializer(StrictMixin, serializers.Serializer[Any]):
    """What to compare, and how fast. Without `tables`: every table."""

    tables = TableNameSerializer(many=True, required=False, allow_empty=False)
    rows_per_second = _throttle(required=False, default=None)


def _limit() -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=LISTED, default=LISTED)


class VerificationListQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for verifications."""

    before = serializers.UUIDField(
        default=None,
        help_text="Only those that were asked for before this one: the id of the last one that you "
        "have.",
    )
    limit = _limit()


class RepairListQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for repairs."""

    before = serializers.IntegerField(
        default=None, min_value=1, help_text="Only those before this id."
    )
    limit = _limit()


class VerificationSerializer(serializers.Serializer[Any]):
    """A verification in numbers. `outcome` is the worst outcome of its tables, empty before the
    end. `wrong` counts rows that differ, `unsettled` rows that changed too often to be compared."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField([str(s) for s in VerificationState])
    outcome = serializers.ChoiceField(_OUTCOMES, allow_blank=True)
    is_scheduled = serializers.BooleanField()
    asked_by = serializers.CharField()
    is_cancel_asked = serializers.BooleanField()
    rows_per_second = serializers.IntegerField(allow_null=True)
    tables = serializers.IntegerField()
    tables_done = serializers.IntegerField()
    rows = serializers.IntegerField()
    wrong = serializers.IntegerField()
    unsettled = serializers.IntegerField()
    asked_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    error = TableErrorSerializer(allow_null=True)


class LeftOutColumnSerializer(serializers.Serializer[Any]):
    """A column that was not compared."""

    column = serializers.CharField()
    reason = serializers.CharField()


class VerifiedTableSerializer(serializers.Serializer[Any]):
    """A table of a verification. While it is compared, `rows_read` of about `rows_expected` rows of
    the source are read. `missing`: only the source has the row; `extra`: only the target;
    `different`: both, with other values. `is_more`: more rows differ than were checked one by one.
    `listed`: how many rows can be read at `rows/`."""

    schema = serializers.CharField()
    table = serializers.CharField()
    outcome = serializers.ChoiceField(_OUTCOMES, allow_blank=True)
    rows_read = serializers.IntegerField()
    rows_expected = serializers.IntegerField(allow_null=True)
    rows_source = serializers.IntegerField()
    rows_target = serializers.IntegerField()
    missing = serializers.IntegerField()
    extra = serializers.IntegerField()
    different = serializers.IntegerField()
    unsettled = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    is_more = serializers.BooleanField()
    listed = serializers.IntegerField()
    left_out = LeftOutColumnSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())
    error = TableErrorSerializer(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class VerificationWholeSerializer(VerificationSerializer):
    """A verification with its tables."""

    verified = VerifiedTableSerializer(many=True)


class DifferingQuerySerializer(serializers.Serializer[Any]):
    """Parameters of a request for differing rows."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    kind = serializers.ChoiceField(_KINDS, required=False, default="")
    after = serializers.IntegerField(min_value=0, default=0, help_text="Only rows after this id.")
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=200)


class DifferingRowSerializer(serializers.Serializer[Any]):
    """A row that differs. `columns` names the columns that differ. A side without the row is null.
    `copies`: how often a table without a key has the row, at source and target. Values are masked
    where your user may not edit; `key_hash` names the row then."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(_KINDS[:3])
    is_unsettled = serializers.BooleanField()
    key = serializers.DictField(child=serializers.JSONField(allow_null=True))
    key_hash = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())
    source = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)  # type: ignore[assignment]
    target = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)
    copies = serializers.ListField(child=serializers.IntegerField())
    repair = serializers.IntegerField(allow_null=True)
    repair_state = serializers.ChoiceField([str(s) for s in RepairState], allow_null=True)


class DifferingSerializer(serializers.Serializer[Any]):
    """Differing rows by id; `after` is the cursor of the next request. At most 1,000 rows of a
    table are listed."""

    schema = serializers.CharField()
    table = serializers.CharField()
    after = serializers.IntegerField(allow_null=True)
    rows = DifferingRowSerializer(many=True)


class RepairAskSerializer(TableNameSerializer):
    """The rows to write again from the source. `verification`: the one that listed them; without
    it, the newest. `rows`: their ids in that list; without it, every listed row that differs."""

    verification = serializers.UUIDField(required=False)
    rows = serializers.ListField(
        child=serializers.IntegerField(min_value=1),
        required=False,
        allow_empty=False,
        max_length=1000,
    )


class RepairSerializer(serializers.Serializer[Any]):
    """A repair. The run does it between two merges. `rows_equal`: rows that had no difference any
    more. `rows_left`: rows that stay as they are, such as quarantined ones."""

    id = serializers.IntegerField()
    schema = serializers.CharField()
    table = serializers.CharField()
    verification = serializers.UUIDField(allow_null=True)
    state = serializers.ChoiceField([str(s) for s in RepairState])
    keys = serializers.IntegerField()
    rows_written = serializers.IntegerField()
    rows_deleted = serializers.IntegerField()
    rows_equal = serializers.IntegerField()
    rows_left = serializers.IntegerField()
    asked_by = serializers.CharField()
    asked_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    error = TableErrorSerializer(allow_null=True)


class VerifyScheduleSerializer(StrictMixin, serializers.Serializer[Any]):
    """When it is verified by itself: five fields of cron, in UTC. Empty: never."""

    cron = serializers.CharField(max_length=100, allow_blank=True)
    rows_per_second = _throttle(required=False, default=None)
    next_at = serializers.DateTimeField(read_only=True, allow_null=True)


def _one(pk: str) -> Replicator:
    return get_object_or_404(Replicator, pk=pk)


def _whole(row: Verification) -> dict[str, Any]:
    view = selectors.verification_views([row])[0]
    tables = [_table(t) for t in row.tables.all()]
    return {**view.to_json(), "verified": tables}


def _table(row: VerifiedTable) -> dict[str, Any]:
    name = TableId(row.schema_name, row.name)
    error = error_shown(row.error_code, row.error_facts, row.ended_at, table=name)
    same = (
        "outcome", "rows_read", "rows_expected", "rows_source", "rows_target", "missing", "extra",
        "different", "unsettled", "quarantined", "is_more", "notes", "started_at", "ended_at",
    )  # fmt: skip
    return {
        "schema": row.schema_name,
        "table": row.name,
        **{n: getattr(row, n) for n in same},
        "listed": row.rows.count(),
        "left_out": [{"column": column, "reason": reason} for column, reason in row.left_out],
        "error": reported(error),
    }


class Verifications(RestView):
    """List and start."""

    @asks(VerificationListQuerySerializer)
    @extend_schema(
        summary="List the verifications, newest first",
        tags=_TAGS,
        operation_id="verifications_list",
        responses={200: VerificationSerializer(many=True), 400: ErrorSerializer, **_MISSING},
    )
    def get(self, request: Request, pk: str) -> Response:
        query = asked(VerificationListQuerySerializer, request)
        views = selectors.verification_views(selectors.verifications_page(_one(pk), **query))
        return Response(VerificationSerializer([v.to_json() for v in views], many=True).data)

    @extend_schema(
        summary="Compare source and target",
        description="Answers at once; the comparison goes on beside the run. 409 while one is "
        "under way, and where the target's rows can't be read back.",
        tags=_TAGS,
        operation_id="verifications_start",
        request=VerificationStartSerializer,
        responses={
            202: VerificationWholeSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **_MISSING,
        },
    )
    def post(self, request: Request, pk: str) -> Response:
        data = valid(VerificationStartSerializer, request.data)
        names = [TableId(t["schema"], t["table"]) for t in data.get("tables", ())] or None
        replicator = _one(pk)
        row = verification_start(
            replicator=replicator,
            names=names,
            rows_per_second=data["rows_per_second"],
            actor=person(request),
        )
        return _accepted(VerificationWholeSerializer(_whole(row)).data, row)


def _accepted(body: Any, row: Verification) -> Response:
    where = reverse("api:verification", args=[row.replicator_id, row.pk])
    return Response(body, status=status.HTTP_202_ACCEPTED, headers={"Location": where})


def _row(pk: str, verification: str) -> Verification:
    return get_object_or_404(Verification, replicator=pk, pk=verification)


class OneVerification(RestView):
    """One with its tables."""

    @extend_schema(
        summary="A verification with its tables",
        tags=_TAGS,
        operation_id="verifications_retrieve",
        responses={200: VerificationWholeSerializer, **_MISSING},
    )
    def get(self, request: Request, pk: str, verification: str) -> Response:
        return Response(VerificationWholeSerializer(_whole(_row(pk, verification))).data)


class VerificationCancel(RestView):
    """Cancel one."""

    @extend_schema(
        summary="Cancel a verification",
        description="It stops within some seconds. 409 where it has ended.",
        tags=_TAGS,
        operation_id="verifications_cancel",
        request=None,
        responses={202: VerificationWholeSerializer, 409: ErrorSerializer, **_MISSING},
    )
    def post(self, request: Request, pk: str, verification: str) -> Response:
        row = _row(pk, verification)
        verification_cancel(verification=row, actor=person(request))
        return _accepted(VerificationWholeSerializer(_whole(row)).data, row)


class VerificationRows(RestView):
    """The rows that differ."""

    @asks(DifferingQuerySerializer)
    @extend_schema(
        summary="The rows of a table that differ, with both values",
        tags=_TAGS,
        operation_id="verifications_rows",
        responses={200: DifferingSerializer, 400: ErrorSerializer, **_MISSING},
    )
    def get(self, request: Request, pk: str, verification: str) -> Response:
        query = asked(DifferingQuerySerializer, request)
        schema, name = query.pop("schema"), query.pop("table")
        table = get_object_or_404(
            VerifiedTable, verification=_row(pk, verification), schema_name=schema, name=name
        )
        rows = selectors.rows_page(table, **query)
        may_see = can_edit(request.user)
        body = {
            "schema": schema,
            "table": name,
            "after": rows[-1].pk if rows else None,
            "rows": [row_shown(r, may_see=may_see).to_json() for r in rows],
        }
        return Response(DifferingSerializer(body).data)


class Repairs(RestView):
    """List and ask for."""

    @asks(RepairListQuerySerializer)
    @extend_schema(
        summary="List the repairs, newest first",
        tags=_TAGS,
        operation_id="repairs_list",
        responses={200: RepairSerializer(many=True), 400: ErrorSerializer, **_MISSING},
    )
    def get(self, request: Request, pk: str) -> Response:
        query = asked(RepairListQuerySerializer, request)
        found = selectors.repairs_page(_one(pk), **query)
        return Response(RepairSerializer([selectors.repair_json(r) for r in found], many=True).data)

    @extend_schema(
        summary="Write differing rows of a table again from the source",
        description="Answers at once; the run does it between two merges. 409 where the table "
        "does not replicate, was copied afresh since, or has no listed row that differs.",
        tags=_TAGS,
        operation_id="repairs_ask",
        request=RepairAskSerializer,
        responses={
            202: RepairSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **_MISSING,
        },
    )
    def post(self, request: Request, pk: str) -> Response:
        data = valid(RepairAskSerializer, request.data)
        replicator = _one(pk)
        if "verification" in data:
            row = _row(pk, str(data["verification"]))
        else:
            newest = selectors.verifications_of(replicator).ended().first()
            if newest is None:
                raise Http404
            row = newest
        repair = repair_ask(
            verification=row,
            schema=data["schema"],
            name=data["table"],
            rows=data.get("rows"),
            actor=person(request),
        )
        where = reverse("api:repairs", args=[replicator.pk])
        body = RepairSerializer(selectors.repair_json(repair)).data
        return Response(body, status=status.HTTP_202_ACCEPTED, headers={"Location": where})


class VerifySchedules(RestView):
    """Read and set."""

    @extend_schema(
        summary="When the replicator is verified by itself",
        tags=_TAGS,
        operation_id="verify_schedule_retrieve",
        responses={200: VerifyScheduleSerializer, **_MISSING},
    )
    def get(self, request: Request, pk: str) -> Response:
        return Response(VerifyScheduleSerializer(selectors.schedule_of(_one(pk))).data)

    @extend_schema(
        summary="Set when the replicator is verified by itself",
        tags=_TAGS,
        operation_id="verify_schedule_set",
        request=VerifyScheduleSerializer,
        responses={
            200: VerifyScheduleSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **_MISSING,
        },
    )
    def put(self, request: Request, pk: str) -> Response:
        data = valid(VerifyScheduleSerializer, request.data)
        found = verify_schedule_set(replicator=_one(pk), actor=person(request), **data)
        return Response(VerifyScheduleSerializer(found).data)


_ONE = "replicators/<uuid:pk>/"
urlpatterns: list[URLPattern] = [
    path(f"{_ONE}verifications/", Verifications.as_view(), name="verifications"),
    path(f"{_ONE}verifications/schedule/", VerifySchedules.as_view(), name="verify-schedule"),
    path(
        f"{_ONE}verifications/<uuid:verification>/",
        OneVerification.as_view(),
        name="verification",
    ),
    path(
        f"{_ONE}verifications/<uuid:verification>/cancel/",
        VerificationCancel.as_view(),
        name="verification-cancel",
    ),
    path(
        f"{_ONE}verifications/<uuid:verification>/rows/",
        VerificationRows.as_view(),
        name="verification-rows",
    ),
    path(f"{_ONE}repairs/", Repairs.as_view(), name="repairs"),
]
