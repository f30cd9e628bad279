"""The JSON forms of plugins, problems and replicators. Forms for reading never hold a secret."""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction, extend_schema_field
from rest_framework import serializers

from replicators.api.schema import options_schema, params_schema
from replicators.connectors.filters.language import MAX_LENGTH
from replicators.connectors.model.modes import CHOICES
from replicators.connectors.model.schema import EXCLUDABLE, UNSUPPORTED
from replicators.connectors.params import Param, describe
from replicators.connectors.problems.problem import Severity
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.options import RENAMED, Options
from replicators.services import params_shown

_TEXT = "Must be a text."


def _unknown(name: str) -> str:
    new = RENAMED.get(name)
    return f"This field is called `{new}` now." if new else "This field is not known."


class StrictMixin:
    """Refuses unknown fields, so that a misspelt option is not silently ignored, and numbers in
    place of texts."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))  # type: ignore[attr-defined]
            if unknown:
                raise serializers.ValidationError({name: [_unknown(name)] for name in unknown})
            numbers = [name for name, value in data.items() if self._is_number_as_text(name, value)]
            if numbers:
                raise serializers.ValidationError({name: [_TEXT] for name in numbers})
        return super().to_internal_value(data)  # type: ignore[misc]

    def _is_number_as_text(self, name: str, value: Any) -> bool:
        field, values = self.fields[name], [value]  # type: ignore[attr-defined]
        if isinstance(field, serializers.ListField) and isinstance(value, list):
            field, values = field.child, value
        is_text = isinstance(field, serializers.CharField)
        return is_text and any(isinstance(v, int | float) for v in values)


class StrictScheme(OpenApiSerializerExtension):
    """How the schema describes `StrictMixin`."""

    target_class = StrictMixin
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        found: dict[str, Any] = auto_schema._map_serializer(
            self.target, direction, bypass_extensions=True
        )
        return {**found, "additionalProperties": False} if direction == "request" else found


class TableWordMixin:
    """Takes the name of a table as `table`, which is the word everywhere, and as `name`, which some
    lists and selections used before."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and "name" in data:
            data = dict(data)
            name = data.pop("name")
            if data.setdefault("table", name) != name:
                raise serializers.ValidationError({"name": ["is another one than table"]})
        return super().to_internal_value(data)  # type: ignore[misc]


class ErrorSerializer(serializers.Serializer[Any]):
    """The one form of every error."""

    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))  # type: ignore[assignment]
    problems = serializers.ListField(child=serializers.DictField())


class IndexSerializer(serializers.Serializer[Any]):
    """The addresses to begin with."""

    version = serializers.CharField()
    schema = serializers.URLField()
    links = serializers.DictField(child=serializers.URLField())


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem, with what to do about it."""

    code = serializers.CharField()
    severity = serializers.ChoiceField([str(s) for s in Severity])
    schema = serializers.CharField(allow_null=True)
    table = serializers.CharField(allow_null=True)
    column = serializers.CharField(allow_null=True)
    title = serializers.CharField()
    message = serializers.CharField()
    suggestion = serializers.CharField()
    impact = serializers.CharField(allow_blank=True)


class ParamSerializer(serializers.Serializer[Any]):
    """A parameter of a connector."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    kind = serializers.SerializerMethodField()
    help = serializers.CharField()
    default = serializers.JSONField(allow_null=True)
    required = serializers.BooleanField()  # type: ignore[assignment]
    secret = serializers.BooleanField()
    addresses = serializers.BooleanField(
        help_text="Whether a change of it asks for the secrets again."
    )
    choices = serializers.ListField(child=serializers.CharField())
    minimum = serializers.IntegerField(allow_null=True)
    maximum = serializers.IntegerField(allow_null=True)

    def get_kind(self, param: Param) -> str:
        return param.kind.__name__


class PluginSerializer(serializers.Serializer[Any]):
    """A line of the list of plugins."""

    role = serializers.SerializerMethodField()
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    summary = serializers.CharField()

    @extend_schema_field(serializers.ChoiceField(["source", "target"]))
    def get_role(self, plugin: Any) -> str:
        return str(self.context["role"])


class PluginDetailSerializer(PluginSerializer):
    """A plugin with its parameters, also as a JSON schema."""

    params = serializers.SerializerMethodField()
    schema = serializers.SerializerMethodField()

    @extend_schema_field(ParamSerializer(many=True))
    def get_params(self, plugin: Any) -> Any:
        return ParamSerializer(list(describe(plugin.params)), many=True).data

    @extend_schema_field(serializers.DictField())
    def get_schema(self, plugin: Any) -> dict[str, Any]:
        return params_schema(plugin.params)


class ModeField(serializers.ChoiceField):
    """How a table is copied."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("required", False)
        if not given["required"]:
            given.setdefault("default", "")
        text = "How this table is copied; empty: as the replicator's option `mode` says."
        super().__init__(
            **{
                "choices": [m.value for m in CHOICES],
                "allow_blank": True,
                "help_text": text,
                **given,
            }
        )


class UnsupportedField(serializers.ChoiceField):
    """What becomes of a value that the target can't hold."""

    def __init__(self) -> None:
        text = (
            "What this table does at a value that the target can't hold; empty: as the option "
            "`unsupported_values` says."
        )
        super().__init__(
            choices=list(UNSUPPORTED), required=False, allow_blank=True, default="", help_text=text
        )


class FilterField(serializers.CharField):
    """A table's row filter."""

    def __init__(self, **given: Any) -> None:
        text = (
            "Which rows are copied, such as `status = 'paid' AND amount >= 10`; empty: all of "
            "them. Once it runs, another filter "
            "copies the table afresh."
        )
        super().__init__(
            **{"max_length": MAX_LENGTH, "required": False, "default": "", "allow_blank": True,
               "help_text": text, **given}
        )  # fmt: skip


SAME_AS_TABLE = "The same as `table`, for programs that were written before that word was here."
_NUMBERS = frozenset(f.name for f in dataclass_fields(Options) if not f.metadata["choices"])
_NOT_TEXT = "must be a number, not a text"
_NOT_EMPTY = "must not be empty"


class TableChoiceSerializer(TableWordMixin, StrictMixin, serializers.Serializer[Any]):
    """A chosen table, also taken with `name` in place of `table`; no columns means all of them,
    also those added later. Changes of the kinds in `excluded` are not applied to the copy; without
    inserts it keeps up the rows of its first copy."""

    schema = serializers.CharField(max_length=255, trim_whitespace=False)
    table = serializers.CharField(max_length=255, trim_whitespace=False, source="name")
    name = serializers.CharField(read_only=True, help_text=SAME_AS_TABLE)
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


@extend_schema_field(options_schema())
class OptionsField(serializers.DictField):
    """The advanced settings, as they are."""


@extend_schema_field(options_schema(takes_null=True))
class OptionsWriteField(serializers.DictField):
    """The advanced settings; those left out, and null, have their defaults. One that can't be is
    refused when it is sent."""

    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        errors = {n: [_NOT_TEXT] for n in found if n in _NUMBERS and isinstance(found[n], str)}
        errors |= {n: [_NOT_EMPTY] for n, value in found.items() if value == ""}
        try:
            parsed = Options.parse(found)
        except InvalidConfig as err:
            named = {name.removeprefix("options."): [text] for name, text in err.errors.items()}
            raise serializers.ValidationError({**named, **errors}) from err
        if errors:
            raise serializers.ValidationError(errors)
        return {
            name: self._stored(parsed, name, value)
            for name, value in found.items()
            if self._stays(value)
        }

    def _stays(self, value: Any) -> bool:
        return value is not None

    def _stored(self, parsed: Options, name: str, value: Any) -> Any:
        return None if value is None else getattr(parsed, name)


class OptionsChangeField(OptionsWriteField):
    """Those left out stay, and null takes one back to its default."""

    def _stays(self, value: Any) -> bool:
        return True


class ConnectorSerializer(serializers.Serializer[Any]):
    """A connector's kind and parameters; secrets come back masked."""

    kind = serializers.CharField()
    params = serializers.DictField()


class ReplicatorSerializer(serializers.ModelSerializer[Replicator]):
    """A replicator as it is defined."""

    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    target = serializers.SerializerMethodField()
    tables = TableChoiceSerializer(many=True)
    options = OptionsField()
    is_deleting = serializers.SerializerMethodField()

    class Meta:
        model = Replicator
        fields = (
            "id", "name", "description", "desired_state", "source", "target", "tables", "options",
            "is_deleting", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(ConnectorSerializer)
    def get_source(self, replicator: Replicator) -> dict[str, Any]:
        return _connector("source", replicator)

    @extend_schema_field(ConnectorSerializer)
    def get_target(self, replicator: Replicator) -> dict[str, Any]:
        return _connector("target", replicator)

    def get_is_deleting(self, replicator: Replicator) -> bool:
        return replicator.deleting_since is not None


class ReplicatorUpdateSerializer(StrictMixin, serializers.Serializer[Any]):
    """A change; what is left out stays. A secret sent back as the mask keeps its stored value, null
    takes a parameter or an option back to its default."""

    name = serializers.CharField(max_length=64, required=False)
    description = serializers.CharField(max_length=400, required=False, allow_blank=True)
    source_params = serializers.DictField(required=False)
    target_params = serializers.DictField(
        required=False, help_text="What says where the tables lie can't be changed."
    )
    options = OptionsChangeField(required=False)
    restart = serializers.BooleanField(
        default=False,
        help_text="Stop a run that runs and start again, so that everything of the change applies.",
    )
    accept_lost_position = serializers.BooleanField(
        default=False,
        help_text="Follow a source whose log does not go on where this replicator stopped: every "
        "table fails until its re-sync.",
    )


def _connector(role: str, row: Any) -> dict[str, Any]:
    return {"kind": getattr(row, f"{role}_kind"), "params": params_shown(row, role)}


def valid(kind: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    """The request's data, checked and parsed. DRF's ValidationError names each wrong field."""
    serializer = kind(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
