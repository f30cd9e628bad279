"""Form fields made from a connector's parameters and from the options. The config checks what is
typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field as Option
from dataclasses import dataclass, fields, replace
from typing import Any

from replicators.config import plugin_of, target_plugin
from replicators.connectors.params import MASK, Param, cleared, describe
from replicators.options import SUGGESTED, Choice, Options

_LARGER = {"seconds": (60, "minutes"), "minutes": (60, "hours"), "hours": (24, "days")}


def span(value: str, unit: str) -> str:
    """A number with its unit as people say it: `1 second`, `24 hours` for 1440 minutes, `30 days`.
    A value stays as it is where it is less than two of the larger unit, or less than three days, or
    no number."""
    while unit in _LARGER and value.isascii() and value.isdigit():
        size, larger = _LARGER[unit]
        count, rest = divmod(int(value), size)
        if rest or count < (3 if larger == "days" else 2):
            break
        value, unit = str(count), larger
    return f"{value} {unit.removesuffix('s') if value == '1' else unit}"


@dataclass(frozen=True, slots=True)
class Field:
    """A field as `components/field.html` shows it. `id` is also its name in the form. `note`
    replaces "optional". `group` is the heading above it. `where`: with which values of other fields
    it has a meaning, as JSON. Only options have the last six: the name
    without its unit, the unit, the default, what it is about, when a change applies, and the
    choices."""

    id: str
    label: str
    value: Any = ""
    input: str = "text"
    help: str = ""
    error: str = ""
    required: bool = True
    note: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    placeholder: str = ""
    is_bool: bool = False
    group: str = ""
    where: str = ""
    title: str = ""
    unit: str = ""
    default: str = ""
    about: str = ""
    applies: str = ""
    picks: tuple[Choice, ...] = ()

    @property
    def amount(self) -> str:
        """The value with its unit, for reading: `1 second`. For a choice, its name."""
        if self.picks:
            return next((p.label for p in self.picks if p.value == self.value), str(self.value))
        return span(str(self.value), self.unit)

    @property
    def default_amount(self) -> str:
        """The default, also in a larger unit: `1440 (24 hours)`."""
        spoken = span(self.default, self.unit)
        return (
            self.default if spoken.startswith(f"{self.default} ") else f"{self.default} ({spoken})"
        )

    @property
    def limits(self) -> str:
        """The least and the greatest value, as people write them."""
        return f"{self.minimum:g} to {self.maximum:g}" if self.maximum is not None else ""


def param_fields(
    role: str, kind: str, values: Mapping[str, Any], errors: Mapping[str, str]
) -> list[Field]:
    """The fields of a connector, group by group. The keys of the errors are like `source.host`."""
    shown = describe(plugin_of(role, kind).params)
    groups = list(dict.fromkeys(["", *(p.group for p in shown)]))
    ordered = sorted(shown, key=lambda p: groups.index(p.group))
    return [_param_field(role, p, values, errors) for p in ordered]


def _param_field(
    role: str, p: Param, values: Mapping[str, Any], errors: Mapping[str, str]
) -> Field:
    default = "" if p.default is None else p.default
    error = errors.get(f"{role}.{p.name}", "")
    value = values.get(p.name, default)
    return Field(
        id=f"{role}.{p.name}",
        label=p.label,
        value="" if error and value == MASK else value if p.secret else cleared(value),
        input="password" if p.secret else "number" if p.kind is int else "text",
        help=p.help,
        error=_sentence(p.label, error),
        required=p.required or p.default not in (None, ""),
        note=p.note,
        choices=p.choices,
        minimum=p.minimum,
        maximum=p.maximum,
        is_bool=p.kind is bool,
        group=p.group,
        where=json.dumps({f"{role}.{n}": begins for n, begins in p.where}) if p.where else "",
    )


def option_fields(
    values: Mapping[str, Any],
    errors: Mapping[str, str],
    defaults: Mapping[str, Any] | None = None,
) -> list[Field]:
    """The fields of the advanced options. `defaults`: those that the target has of its own."""
    return [_option_field(f, values, errors, defaults or {}) for f in fields(Options)]


def picks_fitting(found: list[Field], target_kind: str) -> list[Field]:
    """The fields, with only those modes that the target has; with all modes while no target is
    chosen. A single mode is preselected."""
    if not target_kind:
        return found
    modes = target_plugin(target_kind).capabilities.modes
    return [
        replace(
            f,
            picks=tuple(p for p in f.picks if p.value in modes),
            value=modes[0].value if len(modes) == 1 else f.value,
        )
        if f.id == "options.mode"
        else f
        for f in found
    ]


def _option_field(
    option: Option[Any],
    values: Mapping[str, Any],
    errors: Mapping[str, str],
    defaults: Mapping[str, Any],
) -> Field:
    reported, suggested = option.metadata, defaults.get(option.name, option.default)
    value = values.get(option.name, suggested)
    is_choice = bool(reported["choices"])
    unit = "" if is_choice else option.name.rsplit("_", 1)[1]
    default = suggested if is_choice else f"{suggested:g}"
    return Field(
        id=f"options.{option.name}",
        label=f"{reported['label']} ({unit})" if unit else reported["label"],
        value=f"{value:g}" if isinstance(value, float) else value,
        help=f"{reported['help']} A change applies {reported['applies']}.",
        error=_sentence(reported["label"], errors.get(f"options.{option.name}", "")),
        minimum=reported.get("minimum"),
        maximum=reported.get("maximum"),
        title=reported["label"],
        unit=unit,
        default=str(default),
        about=reported["help"],
        applies=reported["applies"],
        picks=reported["choices"],
    )


def params_from(post: Mapping[str, Any], role: str, kind: str) -> dict[str, Any]:
    """The values typed for a connector. An unticked box is false."""
    found: dict[str, Any] = {}
    for p in describe(plugin_of(role, kind).params):
        name = f"{role}.{p.name}"
        if p.kind is bool:
            found[p.name] = name in post
        elif post.get(name, "") != "":
            found[p.name] = post[name]
    return found


def options_from(
    post: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The values typed for the options. The config refuses values that are impossible.

    An option of `SUGGESTED` is left out where it has its default: with another target it then has
    that one's. `defaults` are those that the form showed.
    """
    found = {}
    for f in fields(Options):
        raw = str(post.get(f"options.{f.name}", "")).strip()
        default = (defaults or {}).get(f.name, f.default)
        if raw and not (f.name in SUGGESTED and raw == f"{default:g}"):
            found[f.name] = raw
    return found


def _sentence(label: str, error: str) -> str:
    """`is required` -> `Host is required.`"""
    if not error:
        return ""
    text = error if error[0].isupper() else f"{label} {error}"
    return text if text.endswith(".") else f"{text}."
