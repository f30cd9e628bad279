"""From a CREATE statement to the definition of a replicator, with the place of each value in the
text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from django.contrib.auth.models import User

from drafts.statements.addresses import kind_called, params_given, require_secret, words_of
from drafts.statements.errors import StatementError
from drafts.statements.placing import placed
from drafts.statements.sources import source_of
from drafts.statements.tables import Tables
from drafts.statements.tokens import Kind, Token
from drafts.statements.tree import Create, Setting
from replicators.config import NAME_LENGTH, parse_params, plugin_of
from replicators.connectors.target import TargetPlugin
from replicators.connectors.uris import Given
from replicators.options import Options
from replicators.permissions import require_make

OPTIONS = tuple(f.name for f in fields(Options))


@dataclass(frozen=True, slots=True)
class Made:
    """The fields of a replicator, and where the statement says each: `target.location`,
    `options.mode`, `tables`."""

    fields: dict[str, Any]
    places: dict[str, int]


@dataclass(frozen=True, slots=True)
class Read:
    """What WITH or SET says: target params, options and the description, each with its place."""

    params: dict[str, str]
    options: dict[str, Any]
    description: str | None
    places: dict[str, int]


def definition_of(statement: Create, source: str, actor: User | None) -> Made:
    """The definition. Asks the source for its tables. `StatementError`, `NoRight`, or the
    source's error."""
    text, into = statement.text, statement.into
    given: list[Given] = []
    if statement.is_cdc:
        kind = kind_called(text, "target", into.value, into.at)
    else:
        kind, given = params_given(text, "target", into)
    require_make(actor, kind)
    params = {g.name: g.value for g in given}
    places = {f"target.{g.name}": into.inside(g.at) for g in given}
    read = settings_read(text, kind, statement.settings, taken=params)
    found = source_of(statement, source, actor)
    at = {f"source.{n}": place for n, place in found.places.items()}
    at["source"] = statement.source.at if statement.source else into.at
    at["target"] = into.at
    with placed(text, {**at, **places, **read.places}):
        parse_params("target", kind, {**params, **read.params})
        parse_params("source", found.kind, found.params, is_stored=not found.places)
    tables = Tables(text, found).selections(statement.watched)
    name = statement.name
    return Made(
        {
            "name": name.value if name else cdc_name(table_named(tables[0]), kind),
            "description": read.description or "",
            "source_kind": found.kind,
            "source_params": found.params,
            "target_kind": kind,
            "target_params": {**params, **read.params},
            "tables": tables,
            "options": read.options,
        },
        {
            "name": (name or statement.watched[0].name).at,
            "tables": statement.watched[0].name.at,
            **at, **places, **read.places,
        },
    )  # fmt: skip


def table_named(table: Mapping[str, Any]) -> str:
    """A stored table's name with its schema."""
    return f"{table['schema']}.{table['name']}" if table["schema"] else str(table["name"])


def cdc_name(table: str, kind: str) -> str:
    """The name of the replicator that CREATE CDC makes."""
    name = f"{table} into {kind}"
    if len(name) <= NAME_LENGTH:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: NAME_LENGTH - 9]} {mark}"


def settings_read(
    text: str, kind: str, settings: Iterable[Setting], taken: Mapping[str, str] | None = None
) -> Read:
    """The settings as the target's params and the replicator's options. `taken`: the params that
    the address gives."""
    plugin = plugin_of("target", kind)
    assert isinstance(plugin, TargetPlugin)
    read = Read({}, {}, None, {})
    words = words_of(plugin)
    for setting in settings:
        param = words.params.get(setting.name)
        if param is not None:
            if param.name in (taken or {}) or param.name in read.params:
                raise StatementError(
                    f"`{setting.name}` is given twice: the address has it too.",
                    text,
                    setting.key.at,
                )
            require_secret(text, setting.text, setting.at)
            read.params[param.name] = words.value(param, setting.text)
            read.places[f"target.{param.name}"] = _inside(setting)
        elif setting.name == "cursor" and taken is not None:
            _require_now(text, setting)
            read.options["first_copy"] = "none"
            read.places["options.first_copy"] = setting.key.at
        elif setting.name in OPTIONS:
            read.options[setting.name] = setting.text
            read.places[f"options.{setting.name}"] = _inside(setting)
        elif setting.name == "description":
            read = Read(read.params, read.options, setting.text, read.places)
        else:
            raise _unknown(text, plugin, setting.key, sorted(words.params))
    return read


def _require_now(text: str, setting: Setting) -> None:
    """`StatementError` for any other place than now: no source keeps its log for a replicator that
    does not exist yet."""
    if setting.text.lower() != "now":
        reason = (
            "A new changefeed starts now, or with a copy: the source keeps no log for one that "
            "does not exist yet. Write cursor = 'now', or leave cursor out to copy the rows first."
        )
        raise StatementError(reason, text, _inside(setting))


def _inside(setting: Setting) -> int:
    """The place of the value's first character, behind a quote."""
    token = setting.value
    return token.inside(0) if token is not None and token.kind is Kind.TEXT else setting.at


def _unknown(text: str, plugin: TargetPlugin, key: Token, words: list[str]) -> StatementError:
    known = sorted({*words, *OPTIONS, "description"})
    near = get_close_matches(key.value.lower(), known, 1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return StatementError(
        f"The target {plugin.name} has no option `{key.value[:40]}`.{meant} "
        f"Known are: {', '.join(known)}.",
        text,
        key.at,
    )
