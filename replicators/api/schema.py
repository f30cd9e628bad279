"""A connector's parameters and a replicator's options as JSON schemas."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from replicators.api import idempotency
from replicators.connectors.params import Param, describe
from replicators.options import Options

_EVERYWHERE = {
    "401": "There is no token, or one that is not known.",
    "403": "Your user may not do this.",
    "503": "Not now: the application's own database is busy, or too many looks go on. "
    "Retry-After says when to try again.",
}
_TOO_LONG = "The address is too long for the web server."
_JSON_TYPES = {str: "string", int: "integer", bool: "boolean"}


_KEY = OpenApiParameter(
    idempotency.HEADER,
    {"type": "string", "pattern": idempotency.PATTERN},
    OpenApiParameter.HEADER,
    description="A text of your own, such as a UUID. A request that is sent again with the same "
    "key within 24 hours is not "
    "carried out again: the first answer comes back.",
)


class RestSchema(AutoSchema):
    """Describes the headers that many addresses take."""

    def get_override_parameters(self) -> list[Any]:
        takes_key = self.method == "POST" and getattr(self.view, "keeps_answers", False)
        return [*super().get_override_parameters(), *([_KEY] if takes_key else [])]


def postprocess_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Adds the answers that any request may get: a hook of drf-spectacular."""
    schema = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path, operations in result["paths"].items():
        reported = _EVERYWHERE | (
            {"404": "There is nothing at this address."} if "{id}" in path else {}
        )
        for operation in operations.values():
            names = {p["name"] for p in operation.get("parameters", ())}
            more = {}
            if "page" in names:
                more["404"] = "There is no such page."
            if idempotency.HEADER in names or names - {"id"}:
                more["400"] = "A parameter or a header can't be as it is."
            if idempotency.HEADER in names:
                more["409"] = "A request with this Idempotency-Key is being carried out."
                more["422"] = "This Idempotency-Key was used for another request."
            known = operation["responses"]
            if names - {"id", idempotency.HEADER}:
                known.setdefault("414", {"content": {"text/html": {}}, "description": _TOO_LONG})
            known |= {
                code: {"content": schema, "description": text}
                for code, text in (reported | more).items()
                if code not in known
            }
            operation["responses"] = dict(sorted(known.items()))
    return result


def params_schema(cls: type) -> dict[str, Any]:
    """The JSON schema of a params dataclass."""
    params = describe(cls)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {p.name: _property(p) for p in params},
        "required": [p.name for p in params if p.required],
    }


def _property(p: Param) -> dict[str, Any]:
    found = {
        "type": _JSON_TYPES[p.kind],
        "title": p.label,
        "description": p.help,
        "default": None if p.required else p.default,
        "enum": list(p.choices) or None,
        "minimum": p.minimum,
        "maximum": p.maximum,
        "writeOnly": p.secret or None,
    }
    return {k: v for k, v in found.items() if v is not None and v != ""}


def options_schema(*, takes_null: bool = False) -> dict[str, Any]:
    """The JSON schema of a replicator's options; `takes_null`: as they are sent."""
    known = {f.name: _option(f) for f in fields(Options)}
    if takes_null:
        known = {name: {**schema, "nullable": True} for name, schema in known.items()}
        for schema in known.values():
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
    return {"type": "object", "additionalProperties": False, "properties": known}


def _option(option: Field[Any]) -> dict[str, Any]:
    reported = option.metadata
    found: dict[str, Any] = {
        "title": reported["label"],
        "description": f"{reported['help']} A change applies {reported['applies']}.",
        "default": option.default,
    }
    if reported["choices"]:
        return {**found, "type": "string", "enum": [c.value for c in reported["choices"]]}
    return {
        **found,
        "type": "number",
        "minimum": reported["minimum"],
        "maximum": reported["maximum"],
    }
