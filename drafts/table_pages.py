"""The wizard's page of tables, and the page of one table's columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from assessments.services import describe_table, problem_of
from drafts import choice, steps, wizard
from drafts.choice import Key
from drafts.kinds import kind_lines, kinds_left
from drafts.listing import SHOWN, Query, find, find_lines, listing_of, listing_refresh
from drafts.table_columns import column_lines, columns_kept, filter_fault
from drafts.wizard import AUTOSAVE, Visit
from replicators.config import InvalidConfig, can_filter, source_plugin
from replicators.connectors.model.modes import CHOICES, Mode, mode_for, why_inserts
from replicators.connectors.model.schema import EXCLUDABLE, TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import ProblemJson
from replicators.forms import Field, option_fields, picks_fitting
from replicators.options import Options
from replicators.pages import go, is_partial, toasted
from replicators.services import params_of

_ASKS = {"list", "refresh"}


@wizard.page("tables")
def tables(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Choose the tables to copy. The list is searched and paged here; the choice is stored in the
    draft."""
    if request.method == "GET":
        return _shown(visit, query_of(request.GET))
    return _posted(visit, query_of(request.POST))


def _posted(visit: Visit, query: Query) -> HttpResponse:
    act = visit.act
    is_saved = act in _ASKS or wizard.save(visit, {"tables": _chosen(visit, query)})
    done = wizard.moved(visit) if is_saved else None
    if done:
        return done
    if act == AUTOSAVE:
        return wizard.saved(visit, found=find(visit.draft, query))
    if act.startswith("page:"):
        query = Query(query.search, query.schema, query.show, _number(act.removeprefix("page:")))
    problem = _asked(visit) if act in _ASKS else None
    is_plain = not is_partial(visit.request)
    if is_plain and visit.status == 200 and problem is None:
        return go(visit.request, f"{visit.url}?{_text(query)}")
    response = _shown(visit, query, problem)
    if visit.status == 200:
        response["HX-Replace-Url"] = f"{visit.url}?{_text(query)}"
    return response


def _asked(visit: Visit) -> ProblemJson | None:
    """Ask the source for its tables. Returns the problem, if there is one."""
    try:
        listing_refresh(visit.draft)
    except ReplicationError as err:
        return problem_of(err).to_json()
    except InvalidConfig:
        return None
    return None


def _chosen(visit: Visit, query: Query) -> choice.Tables:
    """The draft's tables after the ticks on this page and after a bulk button."""
    post, act = visit.request.POST, visit.act
    found = choice.with_page(
        visit.draft.tables,
        keys(post.getlist("shown")),
        set(keys(post.getlist("tables"))),
        {kind: set(keys(post.getlist(kind))) for kind in EXCLUDABLE},
        set(keys(post.getlist("kindless"))),
    )
    if act == "choose-all":
        matching = [k for k in find(visit.draft, query).matching if k[1]]
        return choice.added(found, matching)
    if act == "clear-all":
        return choice.dropped(found, set(find(visit.draft, query).matching))
    if act == "kinds":
        return _with_kind(visit, found)
    if act == "drop-missing":
        return choice.dropped(found, set(find(visit.draft, query).missing))
    return found


def _with_kind(visit: Visit, found: choice.Tables) -> choice.Tables:
    """The choice after a kind of change was taken or left out for all tables that match and are
    chosen. Tables without a key take only the kinds that they can."""
    kind, _, way = visit.request.POST.get("kind", "").partition(":")
    if kind not in EXCLUDABLE or way not in {"copy", "leave"}:
        return found
    keyed = {
        line.key for line in find_lines(visit.draft, query_of(visit.request.POST)) if line.has_key
    }
    return choice.with_kind(found, keyed, kind, is_taken=way == "copy")


def keys(raw: Iterable[str]) -> list[Key]:
    """Parse tables from form values `["schema", "name"]`; others are skipped."""
    found: list[Key] = []
    for text in raw:
        try:
            schema, name = json.loads(text)
            f"{schema}{name}".encode()  # half a character can be stored, but never shown
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(schema, str) and isinstance(name, str):
            found.append((schema, name))
    return found


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1


def query_of(given: Any) -> Query:
    """The query that a form or an address asks for."""
    show = given.get("show", "all")
    return Query(
        search=given.get("search", "")[:200],
        schema=given.get("schema", "")[:255],
        show=show if show in SHOWN else "all",
        page=_number(given.get("page", "1")),
    )


def _text(query: Query) -> str:
    given = {
        "search": query.search,
        "schema": query.schema,
        "show": query.show if query.show != "all" else "",
        "page": query.page if query.page > 1 else "",
    }
    return urlencode({k: v for k, v in given.items() if v})


def _shown(visit: Visit, query: Query, problem: ProblemJson | None = None) -> HttpResponse:
    if visit.conflict:
        visit.draft.tables = visit.typed["tables"]
    found, kind = find(visit.draft, query), visit.draft.source_kind
    context = {
        "found": found,
        "problem": problem,
        "source_faults": steps.faults(visit.draft, "source"),
        "is_wide": True,
        "is_asked": visit.act in _ASKS and is_partial(visit.request),
        "kinds": kind_lines(()),
        "follows_keyless": bool(kind) and source_plugin(kind).capabilities.follows_keyless,
    }
    return wizard.show(visit, "drafts/partials/_tables.html", context)


@wizard.page("tables")
def columns(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Choose the columns of one table: all of them, or the ticked ones."""
    given = request.GET if request.method == "GET" else request.POST
    key = (given.get("schema", ""), given.get("table", ""))
    if not key[1]:
        raise Http404
    context: dict[str, Any] = {"schema": key[0], "table": key[1]}
    try:
        schema = describe_table(
            kind=visit.draft.source_kind,
            params=params_of(visit.draft, "source"),
            table=TableId(*key),
        )
    except ReplicationError as err:
        context["problem"] = problem_of(err).to_json()
        return _drawer(visit, context)
    except InvalidConfig:
        return go(request, wizard.step_url(visit.draft, "source"))
    if request.method == "POST":
        kept, text = columns_kept(request, schema), request.POST.get("filter", "").strip()
        chosen = choice.with_columns(visit.draft.tables, key, kept)
        chosen = choice.with_mode(chosen, key, _mode(request))
        chosen = choice.with_filter(chosen, key, text)
        if "has_kinds" in request.POST:
            chosen = choice.with_kinds(chosen, key, kinds_left(request.POST.getlist("kinds")))
        context["filter_fault"] = filter_fault(text, schema, kept)
        context["kinds_fault"] = _kinds_fault(visit, replace(schema, filter=text), _mode(request))
        if context["filter_fault"] or context["kinds_fault"]:
            visit.status = 422
        elif wizard.save(visit, {"tables": chosen}):
            return _columns_saved(visit, key, kept)
        visit.draft.tables = chosen
    table = choice.by_key(visit.draft.tables).get(key, {})
    names = table.get("columns") or ()
    lines = column_lines(visit.draft.target_kind, schema, names)
    context |= {"lines": lines, "is_all": not names}
    context |= {"mode": _mode_field(visit), "own_mode": table.get("mode", "")}
    context |= {"kinds": kind_lines(table.get("excluded", ())) if schema.key else []}
    chosen = table.get("filter", "")
    context |= {
        "filter": chosen,
        "can_filter": bool(chosen) or can_filter(visit.draft.source_kind, visit.draft.target_kind),
    }
    return _drawer(visit, context)


def _kinds_fault(visit: Visit, schema: TableSchema, mode: str) -> str:
    """The reason why this mode can't leave the unticked kinds of changes out, as a sentence."""
    left = kinds_left(visit.request.POST.getlist("kinds"))
    if (
        "has_kinds" not in visit.request.POST
        or "inserts" not in left
        or len(left) == len(EXCLUDABLE)
    ):
        return ""
    asked = Mode(mode or Options.readable(visit.draft.options).mode)
    why = why_inserts(schema, mode_for(asked, schema))
    return f"Inserts can't be left out: {why}." if why else ""


def _mode(request: HttpRequest) -> str:
    """The table's own mode; empty for the replicator's."""
    given = request.POST.get("mode", "")
    return given if given in CHOICES else ""


def _columns_saved(visit: Visit, key: Key, kept: list[str]) -> HttpResponse:
    count = "1 column" if len(kept) == 1 else f"{len(kept)} columns"
    verb = "is" if len(kept) == 1 else "are"
    text = f"{count} of {key[1]} {verb} copied." if kept else f"All of {key[1]} is copied."
    if not is_partial(visit.request):
        return go(visit.request, visit.url, text)
    response = wizard.saved(visit, found=find(visit.draft, Query()))
    response["HX-Trigger-After-Settle"] = json.dumps({"columnsSaved": True})
    return toasted(response, text)


def _mode_field(visit: Visit) -> Field:
    """The field of the replicator's mode, with the modes that the target allows."""
    draft = visit.draft
    found = picks_fitting(option_fields(draft.options, {}), draft.target_kind)
    return next(f for f in found if f.id == "options.mode")


def _drawer(visit: Visit, context: dict[str, Any]) -> HttpResponse:
    context |= {
        "section": "drafts",
        "draft": visit.draft,
        "version": visit.draft.version,
        "conflict": visit.conflict,
        "tables_url": visit.url,
        "listing": listing_of(visit.draft),
    }
    is_panel = is_partial(visit.request)
    template = "drafts/partials/_columns.html" if is_panel else "drafts/columns.html"
    response = render(visit.request, template, context, status=visit.status)
    response["Cache-Control"] = "no-store"
    return response
