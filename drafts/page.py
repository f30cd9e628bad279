"""The one-page form that makes a replicator: what was typed, what was found, and what is wrong. No HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from drafts.models import Draft
from drafts.selectors import draft_shown
from replicators.config import source_plugin
from replicators.connectors.schema import TableSummary
from replicators.forms import Field, option_fields, options_from, param_fields, params_from
from replicators.selectors import plugins


@dataclass(slots=True)
class Role:
    """The half of the form that is about the source or the target; `tested`: None, or whether the test went well."""

    name: str
    kind: str
    plugins: list[Any]
    fields: list[Field]
    tested: bool | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)

    @property
    def plugin(self) -> Any:
        return next((p for p in self.plugins if p.name == self.kind), None)


@dataclass(frozen=True, slots=True)
class Choice:
    """A table that may be chosen; `value` is what its box sends."""

    schema: str
    name: str
    is_chosen: bool
    summary: TableSummary | None = None

    @property
    def value(self) -> str:
        return json.dumps([self.schema, self.name])


def empty_values() -> dict[str, Any]:
    """A new form: the first source and the first target are chosen."""
    first = {role: next((p.name for p in plugins(role)), "") for role in ("source", "target")}
    return {
        "name": "",
        "description": "",
        "source_kind": first["source"],
        "source_params": {},
        "target_kind": first["target"],
        "target_params": {},
        "tables": [],
        "options": {},
    }


def values_of(draft: Draft | None) -> dict[str, Any]:
    """What the form shows of a draft; secrets masked."""
    values = empty_values()
    if draft is not None:
        values |= {k: v for k, v in draft_shown(draft).items() if k in values and v}
    return values


def read(post: QueryDict, before: Mapping[str, Any]) -> dict[str, Any]:
    """The draft's fields as typed; the columns chosen for a table earlier are kept."""
    columns = {(t["schema"], t["name"]): t.get("columns", []) for t in before["tables"]}
    values: dict[str, Any] = {
        "name": post.get("name", "").strip()[:64],
        "description": post.get("description", "").strip()[:400],
        "tables": [
            {"schema": schema, "name": name, "columns": columns.get((schema, name), [])}
            for schema, name in _names(post.getlist("tables"))
        ],
        "options": options_from(post),
    }
    for role in ("source", "target"):
        known = {p.name for p in plugins(role)}
        kind = post.get(f"{role}_kind", "")
        kind = kind if kind in known else before[f"{role}_kind"]
        values[f"{role}_kind"] = kind
        values[f"{role}_params"] = params_from(post, role, kind)
    return values


def _names(raw: list[str]) -> list[tuple[str, str]]:
    names: dict[tuple[str, str], None] = {}
    for text in raw:
        try:
            schema, name = json.loads(text)
        except (ValueError, TypeError):
            continue
        if isinstance(schema, str) and isinstance(name, str):
            names[schema, name] = None
    return list(names)


def role_of(values: Mapping[str, Any], role: str, errors: Mapping[str, str]) -> Role:
    """A half of the form."""
    kind = values[f"{role}_kind"]
    fields = param_fields(role, kind, values[f"{role}_params"], errors)
    return Role(role, kind, plugins(role), fields)


def choices(
    values: Mapping[str, Any], found: list[TableSummary] | None, search: str = ""
) -> list[Choice]:
    """The tables to tick: what the source has that matches, and every chosen one, also a vanished one."""
    chosen = {(t["schema"], t["name"]) for t in values["tables"]}
    listed = {(t.id.schema, t.id.name): t for t in found or ()}
    text = search.strip().lower()
    shown = {k for k in listed if text in ".".join(k).lower()} | chosen
    return [
        Choice(schema, name, (schema, name) in chosen, listed.get((schema, name)))
        for schema, name in sorted(shown)
    ]


def statements(values: Mapping[str, Any]) -> str:
    """What to run at the source beforehand."""
    steps = source_plugin(values["source_kind"]).setup(values["source_params"])
    return "\n".join(s for step in steps for s in step.statements)


def options(values: Mapping[str, Any], errors: Mapping[str, str]) -> list[Field]:
    """The advanced options."""
    return option_fields(values["options"], errors)
