"""A connector's parameters as a JSON schema."""

from __future__ import annotations

from typing import Any

from replicators.connectors.params import Param, describe

_JSON_TYPES = {str: "string", int: "integer", bool: "boolean"}


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
