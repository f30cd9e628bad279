"""The page to choose what is copied of a deployed replicator's table, and how. Also the lines that
this page and the wizard's choice show."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from assessments.services import describe_table, problem_of
from drafts.kinds import kind_lines, kinds_left
from replicators.config import (
    ROLES,
    InvalidConfig,
    can_filter,
    mode_of,
    parse_tables,
    plugin_of,
    source_plugin,
    tables_to_json,
    target_plugin,
)
from replicators.connectors.filters.language import FilterError
from replicators.connectors.filters.types import bind
from replicators.connectors.model.modes import CHOICES, KEEPS_PAST, Mode, text_of
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Unsupported
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Severity
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.target import FitKind
from replicators.models import Replicator
from replicators.options import Options
from replicators.pages import go, may_edit
from replicators.people import person
from replicators.services import params_of
from runners.engine.schema.selection import followed
from runners.models import Table
from runners.pages.panels import version_of
from runners.services import IllegalTransition
from runners.store.mapping import selections, table_row
from runners.tables.changes import TableRefused, table_change, table_mode


def column_lines(
    target_kind: str, schema: TableSchema, chosen: Collection[str]
) -> list[dict[str, Any]]:
    """A line for each column of a table: its types on both sides, and whether it is in `chosen`
    (empty: all)."""
    fit = target_plugin(target_kind).fits if target_kind else None
    lines = []
    for column in schema.columns:
        can_read = not isinstance(column.type, Unsupported)
        fitted = fit(column) if fit and can_read else None
        has_place = fitted is None or fitted.kind is not FitKind.UNSUPPORTED
        lines.append(
            {
                "name": column.name,
                "native": column.native,
                "nullable": column.nullable,
                "target": fitted.native if fitted else "",
                "reason": fitted.reason if fitted and fitted.kind is FitKind.LOSSY else "",
                "is_supported": can_read and has_place,
                "is_key": column.name in schema.key,
                "is_chosen": not chosen or column.name in chosen or column.name in schema.key,
            }
        )
    return lines


def columns_kept(request: HttpRequest, schema: TableSchema) -> list[str]:
    """The ticked columns and the key's columns. Empty for a choice of all columns, also of those
    added later."""
    if request.POST.get("which") != "some":
        return []
    ticked = {*request.POST.getlist("columns"), *schema.key}
    return [c.name for c in schema.columns if c.name in ticked]


def filter_fault(text: str, schema: TableSchema, kept: Collection[str]) -> str:
    """The fault in a row filter, as a sentence. A filter can use only copied columns."""
    copied = tuple(c for c in schema.columns if not kept or c.name in kept)
    try:
        if text:
            bind(text, replace(schema, columns=copied))
    except FilterError as err:
        return str(err)
    return ""


@may_edit
@require_http_methods(["GET", "POST"])
def table_columns(request: HttpRequest, pk: str) -> HttpResponse:
    """Show what is copied of one table: its columns, kinds of changes and mode. Then copy what is
    chosen."""
    found = get_object_or_404(Replicator, pk=pk)
    given = request.GET if request.method == "GET" else request.POST
    table = TableId(given.get("schema", ""), given.get("table", ""))
    row = get_object_or_404(
        Table.objects.shown(), replicator=found, schema_name=table.schema, name=table.name
    )
    context = _about(found, row)
    try:
        for role in ROLES:
            plugin_of(role, getattr(found, f"{role}_kind"))
        schema = describe_table(
            kind=found.source_kind, params=params_of(found, "source"), table=table
        )
        if request.method == "POST":
            if request.POST.get("version", context["version"]) != context["version"]:
                raise _Refused(STALE)
            return _save(request, found, row, schema)
    except ReplicationError as err:
        context["problem"] = problem_of(err).to_json()
        return render(request, "drafts/table_columns.html", context, status=502)
    except _Refused as err:
        context["refused"] = str(err)
    except _FaultyFilter as err:
        context["filter_fault"] = str(err)
    status = 409 if "refused" in context else 422 if "filter_fault" in context else 200
    context |= _chosen(found, row, schema)
    if status != 200 and context.get("refused") != STALE:
        context |= _typed(request, found, schema)
    return render(request, "drafts/table_columns.html", context, status=status)


STALE = (
    "Somebody changed what is copied of this table after you opened the page. Below is what "
    "is stored now: choose again."
)


class _Refused(Exception):
    """The choice can't be copied. The text says why."""


class _FaultyFilter(Exception):
    """The row filter can't be read, or not for this table. The text says why."""


def _typed(request: HttpRequest, found: Replicator, schema: TableSchema) -> dict[str, Any]:
    """The refused form as it was sent, to correct and send again."""
    post = request.POST
    kept = columns_kept(request, schema)
    lines = column_lines(found.target_kind, schema, kept)
    typed = {"lines": lines, "is_all": post.get("which") != "some"}
    typed |= {"filter": post["filter"]} if "filter" in post else {}
    typed |= {"own_mode": post["mode"]} if "mode" in post else {}
    if "has_kinds" in post and schema.key:
        typed["kinds"] = kind_lines(kinds_left(post.getlist("kinds")))
    return typed


def _save(request: HttpRequest, found: Replicator, row: Table, schema: TableSchema) -> HttpResponse:
    table = TableId(row.schema_name, row.name)
    try:
        mine = next(t for t in parse_tables(found.tables) if t.id == table)
        selection = _asked(request, mine, schema)
        if {*selection.columns} == _ticked(found, row, schema):
            selection = replace(selection, columns=mine.columns)
        before = _row(found, table).is_resync_asked
        if selection == replace(mine, mode=selection.mode):
            table_mode(
                replicator=found,
                schema=table.schema,
                name=table.name,
                mode=selection.mode,
                actor=person(request),
            )
        else:
            table_change(replicator=found, selection=selection, actor=person(request))
    except TableRefused as err:
        first = next(p for p in err.problems if p.severity is Severity.ERROR).message
        raise _Refused(f"{first.text} {first.suggestion}") from err
    except (InvalidConfig, IllegalTransition) as err:
        raise _Refused(getattr(err, "message", str(err))) from err
    except Table.DoesNotExist as err:
        raise Http404 from err
    is_afresh = _row(found, table).is_resync_asked > before or _mode_of(
        found, selection
    ) is not _mode_of(found, mine)
    text = f"{table} is copied afresh." if is_afresh else f"What is copied of {table} is saved."
    return go(request, _tables_url(found), text)


def _row(found: Replicator, table: TableId) -> Table:
    return Table.objects.get(replicator=found, schema_name=table.schema, name=table.name)


def _mode_of(found: Replicator, selection: TableSelection) -> Mode:
    """The mode that the table's choice asks for."""
    return mode_of(found.target_kind, selection.mode, Options.parse(found.options).mode)


def _asked(request: HttpRequest, mine: TableSelection, schema: TableSchema) -> TableSelection:
    """The table's choice from the form. Values that the form lacks stay as they are."""
    post = request.POST
    excluded = tuple(kinds_left(post.getlist("kinds"))) if "has_kinds" in post else mine.excluded
    mode, kept = post.get("mode", mine.mode), columns_kept(request, schema)
    text = post.get("filter", mine.filter).strip()
    if text.splitlines() == mine.filter.splitlines():
        text = mine.filter  # browsers change line ends: this is no change and needs no fresh copy
    elif fault := filter_fault(text, schema, kept):
        raise _FaultyFilter(fault)
    return replace(
        mine,
        columns=tuple(kept),
        filter=text,
        excluded=excluded,
        mode=mode if mode in CHOICES else "",
    )


def _tables_url(found: Replicator) -> str:
    return reverse("runners:replicator-tables", args=[found.pk])


def _about(found: Replicator, row: Table) -> dict[str, Any]:
    mode = Mode(row.mode)
    mine = [t for t in parse_tables(found.tables) if t.id == TableId(row.schema_name, row.name)]
    return {
        "section": "replicators",
        "replicator": found,
        "row": row,
        "version": version_of(tables_to_json(mine)),
        "tables_url": _tables_url(found),
        "keeps_past": mode in KEEPS_PAST,
        "mode_label": text_of(mode).label.lower(),
    }


def _ticked(found: Replicator, row: Table, schema: TableSchema) -> set[str]:
    """The explicitly chosen columns, by their present names."""
    reported = table_row(row, selections(found))
    known_by = source_plugin(found.source_kind).capabilities.columns
    names = followed(
        schema, reported.selection, reported.schema, SchemaPolicy.EVOLVE, known_by
    ).columns
    return {c.name for c in names} | {*schema.key} if reported.columns else set()


def _chosen(found: Replicator, row: Table, schema: TableSchema) -> dict[str, Any]:
    """The columns' lines. A chosen column that was renamed is ticked under its new name."""
    chosen = _ticked(found, row, schema)
    return {
        "lines": column_lines(found.target_kind, schema, chosen),
        "is_all": not chosen,
        **_how(found, TableId(row.schema_name, row.name), schema),
    }


def _how(found: Replicator, table: TableId, schema: TableSchema) -> dict[str, Any]:
    """The kinds of changes and the modes that can be chosen, and those that the table has."""
    mine = next((t for t in parse_tables(found.tables) if t.id == table), TableSelection(table))
    known = target_plugin(found.target_kind).capabilities.modes
    return {
        "kinds": kind_lines(mine.excluded) if schema.key else [],
        "own_mode": mine.mode,
        "modes": [(m.value, text_of(m)) for m in CHOICES if m in known],
        "can_filter": bool(mine.filter) or can_filter(found.source_kind, found.target_kind),
        "filter": mine.filter,
        "default_mode": text_of(_mode_of(found, TableSelection(table))).label,
    }
