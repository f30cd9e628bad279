"""Form fields made from a connector's parameters and from the options; what is typed is checked by the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from replicators.config import Options, plugin_of
from replicators.connectors.params import Param, describe


@dataclass(frozen=True, slots=True)
class Field:
    """A field as `components/field.html` shows it; `id` is also its name in the form. The last five are told of options
    only: the name without its unit, the unit, the default, what it is about, and when a change applies."""

    id: str
    label: str
    value: Any = ""
    input: str = "text"
    help: str = ""
    error: str = ""
    required: bool = True
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    placeholder: str = ""
    is_bool: bool = False
    title: str = ""
    unit: str = ""
    default: str = ""
    about: str = ""
    applies: str = ""

    @property
    def amount(self) -> str:
        """The value with its unit, for reading: `1 second`."""
        return (
            f"{self.value} {self.unit.removesuffix('s') if str(self.value) == '1' else self.unit}"
        )

    @property
    def limits(self) -> str:
        """The least and the most, as people write them."""
        return f"{self.minimum:g} to {self.maximum:g}" if self.maximum is not None else ""


def param_fields(
    role: str, kind: str, values: Mapping[str, Any], errors: Mapping[str, str]
) -> list[Field]:
    """The fields of a connector; errors are known by `source.host`."""
    return [_param_field(role, p, values, errors) for p in describe(plugin_of(role, kind).params)]


def _param_field(
    role: str, p: Param, values: Mapping[str, Any], errors: Mapping[str, str]
) -> Field:
    default = "" if p.default is None else p.default
    return Field(
        id=f"{role}.{p.name}",
        label=p.label,
        value=values.get(p.name, default),
        input="password" if p.secret else "number" if p.kind is int else "text",
        help=p.help,
        error=_sentence(p.label, errors.get(f"{role}.{p.name}", "")),
        required=p.required or p.default not in (None, ""),
        choices=p.choices,
        minimum=p.minimum,
        maximum=p.maximum,
        is_bool=p.kind is bool,
    )


def option_fields(values: Mapping[str, Any], errors: Mapping[str, str]) -> list[Field]:
    """The fields of the advanced options."""
    return [
        Field(
            id=f"options.{f.name}",
            label=f"{f.metadata['label']} ({f.name.rsplit('_', 1)[1]})",
            value=f"{values[f.name]:g}"
            if isinstance(values.get(f.name), float)
            else values.get(f.name, f"{f.default:g}"),
            help=f"{f.metadata['help']} A change applies {f.metadata['applies']}.",
            error=_sentence(f.metadata["label"], errors.get(f"options.{f.name}", "")),
            minimum=f.metadata["minimum"],
            maximum=f.metadata["maximum"],
            title=f.metadata["label"],
            unit=f.name.rsplit("_", 1)[1],
            default=f"{f.default:g}",
            about=f.metadata["help"],
            applies=f.metadata["applies"],
        )
        for f in fields(Options)
    ]


def params_from(post: Mapping[str, Any], role: str, kind: str) -> dict[str, Any]:
    """What was typed for a connector; an unticked box is false."""
    found: dict[str, Any] = {}
    for p in describe(plugin_of(role, kind).params):
        name = f"{role}.{p.name}"
        if p.kind is bool:
            found[p.name] = name in post
        elif post.get(name, "") != "":
            found[p.name] = post[name]
    return found


def options_from(post: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed for the options; what can't be a number is left to the config to refuse."""
    found = {}
    for f in fields(Options):
        raw = str(post.get(f"options.{f.name}", "")).strip()
        if raw:
            found[f.name] = raw
    return found


def _sentence(label: str, error: str) -> str:
    """`is required` -> `Host is required.`"""
    if not error:
        return ""
    text = error if error[0].isupper() else f"{label} {error}"
    return text if text.endswith(".") else f"{text}."
