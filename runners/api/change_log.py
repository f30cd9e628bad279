"""REST: the change log of a table, for programs that read changes (`docs/spark-source.md`)."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from replicators.api.errors import Answer, answers
from replicators.api.permissions import ReadRows
from replicators.api.rest import RestView, asked, asks
from replicators.api.serializers import ErrorSerializer
from replicators.models import Replicator
from replicators.people import person
from replicators.permissions import can_read_rows
from runners.api import errors as _errors  # noqa: F401  registers the answers
from runners.tables.change_log import (
    FILES_MOST,
    ChangesRefused,
    content,
    files_between,
    files_listed,
    log_json,
)

_TAGS = ["replicators"]
_HIGHEST = 2**63 - 1
_REFUSED = {
    400: ErrorSerializer,
    403: ErrorSerializer,
    404: ErrorSerializer,
    409: ErrorSerializer,
}


@answers(ChangesRefused)
def _refused(error: ChangesRefused) -> Answer:
    return Answer(410 if error.code == "changes-pruned" else 409, error.code, error.message)


class ChangesQuerySerializer(serializers.Serializer[Any]):
    """Which changes of which table."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    after = serializers.IntegerField(
        min_value=0, max_value=_HIGHEST, default=0, help_text="Only changes after this sequence."
    )
    upto = serializers.IntegerField(
        min_value=0, max_value=_HIGHEST, default=None, allow_null=True,
        help_text="Only changes up to this sequence.",
    )  # fmt: skip
    limit = serializers.IntegerField(
        min_value=0, max_value=FILES_MOST, default=FILES_MOST, help_text="At most so many files."
    )


class FilesQuerySerializer(serializers.Serializer[Any]):
    """Which change files of which table."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    first = serializers.IntegerField(
        min_value=1, max_value=_HIGHEST, help_text="The `first_sequence` of the first file."
    )
    last = serializers.IntegerField(
        min_value=1, max_value=_HIGHEST, help_text="The `last_sequence` of the last file."
    )


class ChangeColumnSerializer(serializers.Serializer[Any]):
    """A column, and its neutral type with the type's parameters."""

    name = serializers.CharField()
    type = serializers.DictField()


class ChangeSchemaSerializer(serializers.Serializer[Any]):
    """The columns of a change file beside those that every one has, and the row's key."""

    columns = ChangeColumnSerializer(many=True)
    key = serializers.ListField(child=serializers.CharField())


class ChangeFileSerializer(serializers.Serializer[Any]):
    """A change file: Parquet, with one schema (`version`). Commit times are in seconds since 1970.
    `path`: where it lies; empty for those who may not read rows."""

    first_sequence = serializers.IntegerField()
    last_sequence = serializers.IntegerField()
    first_committed_at = serializers.FloatField()
    last_committed_at = serializers.FloatField()
    rows = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    crc32 = serializers.IntegerField()
    version = serializers.CharField()
    path = serializers.CharField()


class ChangesSerializer(ChangeSchemaSerializer):
    """A table's change log. Every change after the sequence `kept_after`, up to `until`, is there;
    `until` is the end of a transaction. Rows with a `_position` below `position` came with the copy
    (`generation`), and those of `skipped_operations` are not copied. `columns` and `key` are of the
    newest schema; `schemas` has those of the listed files. `after` is the cursor of the next
    request."""

    schema = serializers.CharField()
    table = serializers.CharField()
    generation = serializers.IntegerField()
    kept_after = serializers.IntegerField()
    until = serializers.IntegerField()
    position = serializers.IntegerField()
    skipped_operations = serializers.ListField(child=serializers.CharField())
    after = serializers.IntegerField()
    schemas = serializers.DictField(child=ChangeSchemaSerializer())
    files = ChangeFileSerializer(many=True)


class TableChanges(RestView):
    """How far a table's changes can be read, and its change files."""

    @asks(ChangesQuerySerializer)
    @extend_schema(
        summary="A table's change files, by sequence",
        description="Ask again with the answer's `after` until there are no more files. With "
        "`limit=0` it says only how far the log can be read. 409 for a table with a row filter.",
        tags=_TAGS,
        operation_id="replicators_changes_list",
        responses={200: ChangesSerializer, **_REFUSED},
    )
    def get(self, request: Request, pk: str) -> Response:
        query = asked(ChangesQuerySerializer, request)
        name, replicator = query.pop("table"), get_object_or_404(Replicator, pk=pk)
        log, found = files_listed(replicator, name=name, **query)
        shows_paths = can_read_rows(person(request), request.resolver_match)
        body = log_json(log, found, after=query["after"], shows_paths=shows_paths)
        return Response(ChangesSerializer(body).data)


class TableChangeFiles(RestView):
    """The content of change files."""

    permission_classes = (ReadRows,)

    @asks(FilesQuerySerializer)
    @extend_schema(
        summary="The content of change files",
        description="The bytes of the files between the two sequences, one file after the other "
        f"without a gap, as they are listed; at most {FILES_MOST} files. 410 where they were "
        "pruned. It needs the right to read rows.",
        tags=_TAGS,
        operation_id="replicators_changes_read",
        responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            410: ErrorSerializer,
            **_REFUSED,
        },
    )
    def get(self, request: Request, pk: str) -> StreamingHttpResponse:
        query = asked(FilesQuerySerializer, request)
        name, replicator = query.pop("table"), get_object_or_404(Replicator, pk=pk)
        found = files_between(replicator, name=name, **query)
        headers = {"Content-Length": str(sum(f.size_bytes for f in found))}
        return StreamingHttpResponse(
            content([f.path for f in found]),
            content_type="application/octet-stream",
            headers=headers,
        )
