"""The page that adds tables to a deployed replicator. Several tables are picked at once from the
source's list. The picked tables travel with the form, so nothing is stored before they are
added."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods

from assessments.services import describe_table, problem_of
from drafts.choice import Key
from drafts.listing import Found, Query, find_addable, listing_refresh
from drafts.table_pages import keys, query_of
from replicators.config import InvalidConfig, source_plugin
from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import ProblemJson, Severity
from replicators.models import Replicator
from replicators.pages import go, is_partial, may_edit
from replicators.people import person
from replicators.services import params_of
from runners.models import Table
from runners.services import IllegalTransition
from runners.tables.changes import TableRefused, tables_add

_ASKS = {"list", "refresh"}
_ADDS = {"add", "add-without"}
NONE_PICKED = "Choose at least one table."


@dataclass(slots=True)
class _Page:
    """What the list shows besides the tables: the result of the pressed button."""

    found: Replicator
    picked: set[Key]
    query: Query
    status: int = 200
    problems: list[ProblemJson] = field(default_factory=list)
    refused: str = ""
    is_asked: bool = False
    droppable: list[tuple[str, str, str]] = field(default_factory=list)


@may_edit
@require_http_methods(["GET", "POST"])
def tables_pick(request: HttpRequest, pk: str) -> HttpResponse:
    """Search, page and tick. *Add tables* assesses the picked tables, then adds all of them or
    none."""
    found = get_object_or_404(Replicator, pk=pk)
    if found.deleting_since is not None:
        messages.error(request, "This replicator is being deleted.")
        return go(request, found)
    if request.method == "GET":
        return _show(request, _Page(found, set(), query_of(request.GET)))
    act, page = request.POST.get("act", ""), _posted(found, request.POST)
    if act in _ASKS:
        page.is_asked = True
        _ask(page)
    elif act in _ADDS and _add(request, page):
        return go(request, _tables_url(found))
    return _show(request, page)


def _posted(found: Replicator, post: QueryDict) -> _Page:
    """The form as it was sent: the ticks on this page, and the tables picked on other pages of the
    list."""
    act, query = post.get("act", ""), query_of(post)
    picked = set(keys(post.getlist("picked"))) - set(keys(post.getlist("shown")))
    picked |= set(keys(post.getlist("tables")))
    if act.startswith("page:"):
        query = query_of({**post.dict(), "page": act.removeprefix("page:")})
    matching = find_addable(found, picked, query).matching
    if act == "choose-all":
        picked |= set(matching)
    elif act == "clear-all":
        picked -= set(matching)
    return _Page(found, picked, query)


def _ask(page: _Page) -> None:
    try:
        listing_refresh(page.found)
    except ReplicationError as err:
        page.problems = [problem_of(err).to_json()]
    except InvalidConfig as err:
        page.refused = " ".join(err.errors.values())


def _add(request: HttpRequest, page: _Page) -> bool:
    """Add the picked tables. Returns whether this succeeded; if not, the page says why. Only tables
    in the source's list can be picked."""
    picked = find_addable(page.found, page.picked, Query()).picked
    if not picked:
        page.status, page.refused = 422, NONE_PICKED
        return False
    try:
        selections = [_selection(request, page.found, key) for key in picked]
        added = tables_add(replicator=page.found, selections=selections, actor=person(request))
    except TableRefused as err:
        errors = [p for p in err.problems if p.severity is Severity.ERROR]
        page.status, page.problems = 409, [p.to_json() for p in errors]
        found = [(p.table.schema, p.table.name, p.column) for p in errors if p.table and p.column]
        page.droppable = found if len(found) == len(errors) else []
    except IllegalTransition as err:
        page.status, page.refused = 409, err.message
    except ReplicationError as err:
        page.status, page.problems = 409, [problem_of(err).to_json()]
    except InvalidConfig as err:
        page.status, page.refused = 409, " ".join(err.errors.values())
    else:
        messages.success(request, _done(added))
        return True
    return False


def _selection(request: HttpRequest, found: Replicator, key: Key) -> TableSelection:
    """The table's choice: the whole table. After *Add without them*, it leaves out columns that
    can't be copied and those added later."""
    table = TableId(*key)
    left_out = {c for *of, c in _columns(request.POST) if tuple(of) == key}
    if request.POST.get("act") != "add-without" or not left_out:
        return TableSelection(table)
    params = params_of(found, "source")
    schema = describe_table(kind=found.source_kind, params=params, table=table)
    return TableSelection(table, tuple(c.name for c in schema.columns if c.name not in left_out))


def _columns(post: QueryDict) -> list[list[str]]:
    """The columns to leave out, each `["schema", "table", "column"]`."""
    try:
        found = [json.loads(text) for text in post.getlist("left_out")]
    except (ValueError, RecursionError):
        return []
    return [c for c in found if isinstance(c, list) and [type(p) for p in c] == [str] * 3]


def _done(added: list[Table]) -> str:
    if len(added) == 1:
        return f"{added[0]} will be copied, then followed."
    return f"{len(added)} tables will be copied, then followed."


def _tables_url(found: Replicator) -> str:
    return reverse("runners:replicator-tables", args=[found.pk])


def _show(request: HttpRequest, page: _Page) -> HttpResponse:
    found = find_addable(page.found, page.picked, page.query)
    context = {
        "section": "replicators",
        "replicator": page.found,
        "url": request.path,
        "tables_url": _tables_url(page.found),
        "found": found,
        "elsewhere": _elsewhere(found),
        "problems": page.problems,
        "droppable": page.droppable,
        "refused": page.refused,
        "is_asked": page.is_asked and is_partial(request),
        "follows_keyless": _follows_keyless(page.found.source_kind),
    }
    panel = "drafts/partials/_pick.html"
    template = panel if is_partial(request) else "drafts/tables_pick.html"
    response = render(request, template, context, status=page.status)
    patch_vary_headers(response, ("HX-Request",))
    response["Cache-Control"] = "no-store"
    return response


def _elsewhere(found: Found) -> list[Key]:
    """The picked tables that are on other pages of the list."""
    shown = {line.key for line in found.lines}
    return [key for key in found.picked if key not in shown]


def _follows_keyless(kind: str) -> bool:
    try:
        return source_plugin(kind).capabilities.follows_keyless
    except ReplicationError:
        return False
