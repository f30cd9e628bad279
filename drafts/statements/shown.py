"""Writes a replicator or draft as the statement that makes it. Secrets are never in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from drafts.statements.parser import RESERVED
from replicators.config import ROLES, plugins_of, suggested_for
from replicators.connectors.params import MASK
from replicators.connectors.uris import written
from replicators.options import Options
from replicators.services import Definition, params_shown

_PLAIN = re.compile(r"[^\W\d][\w$-]*")


def statement_of(row: Definition) -> str:
    """CREATE CHANGEFEED with everything that differs from a default; empty where the row is not
    complete, or its plugins are gone. A secret is the mask: write it there before sending it."""
    if not (row.name and row.tables) or any(
        getattr(row, f"{role}_kind") not in plugins_of(role) for role in ROLES
    ):
        return ""
    tables = ",\n          ".join(_table(t) for t in row.tables)
    lines = [
        f"CREATE CHANGEFEED {name_shown(row.name)}",
        f"FOR TABLE {tables}",
        f"FROM SOURCE {_text(_address(row, 'source'))}",
        f"INTO {_text(_address(row, 'target'))}",
    ]
    settings = _settings(row)
    if settings:
        lines.append("WITH " + ",\n     ".join(f"{k} = {_value(v)}" for k, v in settings.items()))
    return "\n".join(lines) + ";"


def has_secrets(statement: str) -> bool:
    """Whether something stands for a secret in the statement."""
    return MASK in statement


def name_shown(name: str) -> str:
    """A name, in double quotes where it is no plain word."""
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    return _text(str(value))


def _address(row: Definition, role: str) -> str:
    kind = getattr(row, f"{role}_kind")
    plugin = plugins_of(role)[kind]
    return written(kind, plugin.params, plugin.uri, params_shown(row, role))


def _table(table: Mapping[str, Any]) -> str:
    parts = [table["schema"], table["name"]] if table["schema"] else [table["name"]]
    text = ".".join(name_shown(p) for p in parts)
    for word, names in (("", table.get("columns")), (" WITHOUT", table.get("excluded"))):
        if names:
            text += f"{word} ({', '.join(name_shown(n) for n in names)})"
    if table.get("filter"):
        text += f" WHERE {_text(table['filter'])}"
    for word in ("mode", "unsupported"):
        if table.get(word):
            text += f" {word.upper()} {table[word]}"
    return text


def _settings(row: Definition) -> dict[str, Any]:
    """The options that differ from their defaults, and the description."""
    target = params_shown(row, "target")
    default = Options(**suggested_for(row.target_kind, target)).to_json()
    own = Options.readable(row.options).to_json()
    found = {k: v for k, v in own.items() if k in row.options and v != default[k]}
    return {**found, **({"description": row.description} if row.description else {})}
