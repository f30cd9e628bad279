"""Pages of drafts: the list, and the one-page form that makes a replicator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from assessments.services import connection_test, list_tables, problem_of
from drafts import page, services
from drafts.models import Draft
from drafts.selectors import drafts_for_list
from replicators.config import InvalidConfig
from replicators.connectors.errors import ReplicationError
from replicators.connectors.problems import Severity
from replicators.connectors.schema import TableSummary
from replicators.models import Replicator
from replicators.pages import go, is_partial, may_edit, may_view, render_page, toasted
from replicators.people import person
from replicators.permissions import can_edit
from replicators.services import NameTaken, params_of


@dataclass(slots=True)
class Outcome:
    """What an act on the form found."""

    status: int = 200
    errors: dict[str, str] = field(default_factory=dict)
    problems: list[dict[str, Any]] = field(default_factory=list)
    tests: dict[str, list[Any]] = field(default_factory=dict)
    tables: list[TableSummary] | None = None
    tables_problem: dict[str, Any] | None = None
    toast: tuple[str, str] | None = None
    made: Replicator | None = None


@may_view
@require_GET
def drafts(request: HttpRequest) -> HttpResponse:
    """Drafts that are not replicators yet."""
    context = {
        "section": "drafts",
        "drafts": drafts_for_list(),
        "is_editor": can_edit(request.user),
    }
    return render(request, "drafts/drafts.html", context)


@may_edit
@require_POST
def delete(request: HttpRequest, pk: str) -> HttpResponse:
    """Forget a draft."""
    services.draft_delete(draft=get_object_or_404(Draft, pk=pk))
    return go(request, "drafts:drafts", "The draft is deleted.")


@may_edit
@require_http_methods(["GET", "POST"])
def form(request: HttpRequest, pk: str | None = None) -> HttpResponse:
    """The form; each of its buttons saves the draft first, so nothing typed is lost."""
    draft = get_object_or_404(Draft, pk=pk) if pk else None
    if draft is not None and draft.replicator_id:
        return go(request, reverse("runners:replicator", args=[draft.replicator_id]))
    before = page.values_of(draft)
    if request.method == "GET":
        return _render(request, draft, before, Outcome())
    values = page.read(request.POST, before)
    outcome = Outcome()
    try:
        draft = _save(request, draft, values)
    except services.StaleDraft as err:
        outcome.status = 409
        outcome.toast = ("The draft was changed elsewhere. Your entries are still here; press again to keep them.", "error")  # fmt: skip
        return _render(request, draft, values, outcome, version=err.version)
    except InvalidConfig as err:
        return _render(request, draft, values, Outcome(status=422, errors=err.errors))
    _act(request, draft, outcome)
    if outcome.made is not None:
        return go(request, outcome.made, f"{outcome.made.name} is made, and starts.")
    return _render(request, draft, page.values_of(draft), outcome)


def _save(request: HttpRequest, draft: Draft | None, values: dict[str, Any]) -> Draft:
    if draft is None:
        return services.draft_create(actor=person(request), **values)
    version = request.POST.get("version", "")
    number = int(version) if version.isascii() and version.isdigit() else 0
    return services.draft_update(draft=draft, version=number, **values)


def _act(request: HttpRequest, draft: Draft, outcome: Outcome) -> None:
    act = request.POST.get("act", "save")
    if act in {"test-source", "test-target"}:
        _test(draft, act.removeprefix("test-"), outcome)
    elif act == "deploy":
        _deploy(request, draft, outcome)
    elif act == "save":
        outcome.toast = ("The draft is saved.", "success")
    if act == "tables" or (request.POST.get("listed") and outcome.made is None):
        _list(draft, outcome)


def _test(draft: Draft, role: str, outcome: Outcome) -> None:
    kind = getattr(draft, f"{role}_kind")
    try:
        outcome.tests[role] = connection_test(role=role, kind=kind, params=params_of(draft, role))
    except InvalidConfig as err:
        outcome.status, outcome.errors = 422, err.errors


def _list(draft: Draft, outcome: Outcome) -> None:
    try:
        outcome.tables = list_tables(kind=draft.source_kind, params=params_of(draft, "source"))
    except InvalidConfig as err:
        outcome.status, outcome.errors = 422, outcome.errors | err.errors
    except ReplicationError as err:
        outcome.tables_problem = problem_of(err).to_json()


def _deploy(request: HttpRequest, draft: Draft, outcome: Outcome) -> None:
    try:
        outcome.made = services.draft_deploy(draft=draft, actor=person(request))
    except (InvalidConfig, NameTaken) as err:
        outcome.status, outcome.errors = 422, err.errors
    except services.DeployRefused as err:
        outcome.status = 409
        outcome.problems = [p.to_json() for p in err.problems]


def _render(
    request: HttpRequest,
    draft: Draft | None,
    values: dict[str, Any],
    outcome: Outcome,
    version: int | None = None,
) -> HttpResponse:
    roles = {r: page.role_of(values, r, outcome.errors) for r in ("source", "target")}
    for name, problems in outcome.tests.items():
        roles[name].tested = all(p.severity != Severity.ERROR for p in problems)
        roles[name].problems = [p.to_json() for p in problems]
    search = request.POST.get("search", "")
    context = {
        "section": "replicators",
        "draft": draft,
        "version": version or (draft.version if draft else 1),
        "values": values,
        "roles": roles,
        "outcome": outcome,
        "choices": page.choices(values, outcome.tables, search),
        "search": search,
        "statements": page.statements(values),
        "options": page.options(values, outcome.errors),
        "has_option_errors": any(k.startswith("options.") for k in outcome.errors),
    }
    response = render_page(
        request, "drafts/form.html", "drafts/partials/_form.html", context, outcome.status
    )
    if is_partial(request) and draft is not None:
        response["HX-Replace-Url"] = reverse("drafts:draft", args=[draft.pk])
    return toasted(response, *outcome.toast) if outcome.toast else response
