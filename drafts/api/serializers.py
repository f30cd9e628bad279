"""The JSON forms of drafts: one to read, one to write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from drafts.models import Draft
from replicators.api.serializers import (
    FilterField,
    ModeField,
    OptionsField,
    OptionsWriteField,
    StrictMixin,
    TableChoiceSerializer,
    TableWordMixin,
    UnsupportedField,
)
from replicators.connectors.model.schema import EXCLUDABLE
from replicators.services import params_shown


class DraftSerializer(serializers.ModelSerializer[Draft]):
    """A draft; secrets come back as the mask."""

    source_params = serializers.SerializerMethodField()
    target_params = serializers.SerializerMethodField()
    tables = TableChoiceSerializer(many=True)
    options = OptionsField()

    class Meta:
        model = Draft
        fields = (
            "id", "version", "name", "description", "source_kind", "source_params", "target_kind",
            "target_params", "tables", "options", "replicator_id", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.DictField())
    def get_source_params(self, draft: Draft) -> dict[str, Any]:
        return params_shown(draft, "source")

    @extend_schema_field(serializers.DictField())
    def get_target_params(self, draft: Draft) -> dict[str, Any]:
        return params_shown(draft, "target")


class DraftWriteSerializer(StrictMixin, serializers.Serializer[Any]):
    """What may be written: any part, in any order. A secret sent back as the mask keeps its stored
    value."""

    name = serializers.CharField(max_length=64, required=False, allow_blank=True)
    description = serializers.CharField(max_length=400, required=False, allow_blank=True)
    source_kind = serializers.CharField(max_length=40, required=False, allow_blank=True)
    source_params = serializers.DictField(required=False)
    target_kind = serializers.CharField(max_length=40, required=False, allow_blank=True)
    target_params = serializers.DictField(required=False)
    tables = TableChoiceSerializer(many=True, required=False)
    options = OptionsWriteField(required=False)


class DraftUpdateSerializer(DraftWriteSerializer):
    """A change; `version` is that of the draft which was read. Each field that is sent is replaced
    as a whole, parameters too: what they leave out has its default then, and a secret that they
    leave out is forgotten (sent back as the mask, it stays, unless the address that it belongs to
    changes: then it has to be sent)."""

    version = serializers.IntegerField(min_value=1)


class TableAddSerializer(TableWordMixin, StrictMixin, serializers.Serializer[Any]):
    """A table to add; no columns means all of them, also those added later."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    columns = serializers.ListField(
        child=serializers.CharField(max_length=255, trim_whitespace=False),
        required=False,
        default=list,
    )
    excluded = serializers.ListField(
        child=serializers.ChoiceField(EXCLUDABLE), required=False, default=list
    )
    mode = ModeField()
    filter = FilterField()
    unsupported = UnsupportedField()


class TableModeSerializer(TableWordMixin, StrictMixin, serializers.Serializer[Any]):
    """A table and the mode that it is to be copied in."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    mode = ModeField(required=True)


class TableRemoveQuerySerializer(serializers.Serializer[Any]):
    """A table to remove."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False)
    keep_target = serializers.BooleanField(
        default=True, help_text="Whether the target's table stays."
    )


class DraftListQuerySerializer(serializers.Serializer[Any]):
    """Which drafts are listed; all that is said must fit."""

    name = serializers.CharField(required=False, help_text="A part of the name, in any case.")
    source_kind = serializers.CharField(required=False, help_text="The plugin's name.")
    target_kind = serializers.CharField(required=False, help_text="The plugin's name.")
