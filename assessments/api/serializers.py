"""The JSON forms of connections, tables and reports."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from replicators.api.serializers import (
    SAME_AS_TABLE,
    OptionsWriteField,
    ProblemSerializer,
    StrictMixin,
    TableChoiceSerializer,
    TableWordMixin,
)
from replicators.connectors.model.modes import Mode


class SourceSerializer(StrictMixin, serializers.Serializer[Any]):
    """A source by kind and parameters; nothing of it is stored."""

    kind = serializers.CharField(max_length=40)
    params = serializers.DictField()


class RoleSerializer(StrictMixin, serializers.Serializer[Any]):
    """Which of the two servers."""

    role = serializers.ChoiceField(["source", "target"], default="source")


class ConnectionSerializer(SourceSerializer):
    """A source or a target."""

    role = serializers.ChoiceField(["source", "target"], default="source")


class ConnectionAnswerSerializer(serializers.Serializer[Any]):
    """`ok` is false where a problem is an ERROR."""

    ok = serializers.BooleanField()
    problems = ProblemSerializer(many=True)


class TableSummarySerializer(serializers.Serializer[Any]):
    """A line of the table list."""

    schema = serializers.CharField(source="id.schema")
    table = serializers.CharField(source="id.name")
    name = serializers.CharField(source="id.name", help_text=SAME_AS_TABLE)
    rows_estimated = serializers.IntegerField(allow_null=True)
    size_bytes = serializers.IntegerField(allow_null=True)
    has_key = serializers.BooleanField()
    columns = serializers.IntegerField()


class OneTableSerializer(TableWordMixin, SourceSerializer):
    """A source and a table of it."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)


class ColumnSerializer(serializers.Serializer[Any]):
    """A column as the source has it."""

    name = serializers.CharField()
    type = serializers.DictField()
    native = serializers.CharField()
    nullable = serializers.BooleanField()
    ordinal = serializers.IntegerField()
    generated = serializers.BooleanField()


class TableSchemaSerializer(serializers.Serializer[Any]):
    """A table as the source has it."""

    schema = serializers.CharField()
    table = serializers.CharField(source="name")
    name = serializers.CharField(help_text=SAME_AS_TABLE)
    columns = ColumnSerializer(many=True)
    key = serializers.ListField(child=serializers.CharField())
    primary_key = serializers.ListField(child=serializers.CharField())


class ConfigSerializer(StrictMixin, serializers.Serializer[Any]):
    """A whole definition, as an export gives it, with its secrets."""

    name = serializers.CharField(max_length=64, default="Unnamed")
    description = serializers.CharField(max_length=400, allow_blank=True, default="")
    source_kind = serializers.CharField(max_length=40)
    source_params = serializers.DictField()
    target_kind = serializers.CharField(max_length=40)
    target_params = serializers.DictField()
    tables = TableChoiceSerializer(many=True, allow_empty=False)
    options = OptionsWriteField(default=dict)


class ReportColumnSerializer(serializers.Serializer[Any]):
    """What becomes of a column."""

    name = serializers.CharField()
    native = serializers.CharField()
    neutral = serializers.DictField()
    target_type = serializers.CharField(allow_blank=True)
    support = serializers.ChoiceField(["YES", "PARTIAL", "NO"])
    reason = serializers.CharField(allow_blank=True)
    is_key = serializers.BooleanField()


class ReportTableSerializer(serializers.Serializer[Any]):
    """What becomes of a table."""

    schema = serializers.CharField()
    table = serializers.CharField()
    name = serializers.CharField(help_text=SAME_AS_TABLE)
    has_key = serializers.BooleanField()
    columns_total = serializers.IntegerField()
    partial = serializers.IntegerField()  # type: ignore[assignment]
    unsupported = serializers.IntegerField()
    columns = ReportColumnSerializer(many=True)
    mode = serializers.ChoiceField([m.value for m in Mode])
    added = ReportColumnSerializer(many=True, help_text="The columns that the mode adds.")


class ReportSerializer(serializers.Serializer[Any]):
    """The report before: an ERROR blocks the deploy."""

    tables = ReportTableSerializer(many=True)
    problems = ProblemSerializer(many=True)
    has_errors = serializers.BooleanField()
    assessed_at = serializers.DateTimeField()
