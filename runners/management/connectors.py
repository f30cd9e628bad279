"""docs/connectors.md as text: the parameters and capabilities of every plugin, from the registry.
It names no plugin."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import Any

from replicators.connectors import registry
from replicators.connectors.capabilities import Delivery
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from replicators.connectors.params import Param, describe
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import FitKind, TargetPlugin

TYPES: tuple[tuple[str, LogicalType], ...] = (
    ("true or false", Boolean()),
    ("integer, 16 bits", Int(16)),
    ("integer, 32 bits", Int(32)),
    ("integer, 64 bits", Int(64)),
    ("integer without sign, 64 bits", Int(64, signed=False)),
    ("exact number, 18 digits, 4 of them after the point", Decimal(18, 4)),
    ("floating point, 32 bits", Float(32)),
    ("floating point, 64 bits", Float(64)),
    ("text", String()),
    ("bytes", Bytes()),
    ("date", Date()),
    ("time of day", Time()),
    ("date and time without zone", Timestamp()),
    ("moment", Timestamp(zone=True)),
    ("JSON", Json()),
    ("UUID", Uuid()),
    ("one of some words", Enum(("a", "b"))),
    ("list of text", Array(String())),
)
WORDS = {
    "columns": "How columns are known while a table changes",
    "minimum_version": "Oldest version of the server",
    "log_label": "Its log is called",
    "reader_label": "What keeps our place in the log",
    "has_exact_snapshot": "The first copy shows one moment",
    "has_row_filters": "Row filters",
    "can_quarantine": "Rows with a value that does not fit can wait apart",
    "has_deliveries": "Changes come as whole data sets, by a schedule or when they arrive",
    "holds_log": "The source keeps its log until it is read",
    "follows_keyless": "Updates and deletes are followed without a key",
    "modes": "Modes",
    "can_rewind": "A table can be rewound",
    "can_read_rows": "A table can be verified and repaired",
    "can_take_over": "Tables that it has already can be taken over without a copy",
    "merges_together": "All tables can merge together, in one transaction",
    "has_watermarks": "Several tables can be read at one moment of the source",
    "is_replaced_at_once": "A fresh copy replaces the old rows in one step",
    "has_nul": "A text may have a NUL character",
    "keeps_rows": "It has the last version of each row, though it takes every change",
    "rejects_rows": "Rows that it refuses wait apart, and can be sent again",
    "has_subscribers": "Programs can ask it for changes",
    "delivery": "Delivery",
}


def _shown(value: Any) -> str:
    if isinstance(value, Delivery):
        return f"{value.label}. {value.about}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | frozenset):
        return ", ".join(sorted(_shown(v) for v in value)) or "none"
    return str(value).replace("_", " ") if isinstance(value, StrEnum) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _param(p: Param) -> str:
    if p.choices:
        kind = ", ".join(f"`{choice}`" for choice in p.choices)
    else:
        kind = {str: "text", int: "whole number", bool: "yes or no"}[p.kind]
    if p.required:
        default = "required"
    elif p.secret or p.default in ("", None):
        default = "none"
    else:
        default = f"`{_shown(p.default)}`"
    reported = f"{p.help} Secret: it is kept encrypted and never shown." if p.secret else p.help
    return f"| `{p.name}` | {_cell(p.label)} | {kind} | {default} | {_cell(reported.strip())} |"


def _about(plugin: SourcePlugin | TargetPlugin) -> str:
    can = plugin.capabilities
    facts = [
        (WORDS.get(f.name, f.name.replace("_", " ")), getattr(can, f.name)) for f in fields(can)
    ]
    lines = "\n".join(
        f"| {words} | {_cell(_shown(value))} |" for words, value in facts if value != ""
    )
    asked = "\n".join(_param(p) for p in describe(plugin.params))
    return f"""### {plugin.label}

`{plugin.name}`. {plugin.summary}

| what | |
|---|---|
{lines}

| parameter | label | value | default | what it is |
|---|---|---|---|---|
{asked}
"""


def _fits(target: TargetPlugin) -> str:
    words = {FitKind.WIDENED: " (wider)", FitKind.LOSSY: " (loses something: {})"}
    lines = []
    for called, kind in TYPES:
        fit = target.fit(kind)
        native = f"`{fit.native}`" if fit.native else ""
        if fit.kind is FitKind.UNSUPPORTED:
            native = f"no place: {fit.reason}"
        lines.append(f"| {called} | {_cell(native + words.get(fit.kind, '').format(fit.reason))} |")
    return "| a column of | becomes |\n|---|---|\n" + "\n".join(lines) + "\n"


def markdown() -> str:
    """The text of docs/connectors.md."""
    sources = [p for p in registry.sources().values() if not p.is_hidden]
    targets = [p for p in registry.targets().values() if not p.is_hidden]
    of_sources = "\n".join(_about(p) for p in sources)
    of_targets = "\n".join(_about(p) + "\n" + _fits(p) for p in targets)
    return f"""# Connectors

Made by `manage.py configuration_docs` from the plugins' own definitions; change those, not this file. What to do at a
server beforehand stands in `setup.md`, how to write a plugin in `plugins.md`.

## Sources

{of_sources}
## Targets

{of_targets}"""  # noqa: E501
