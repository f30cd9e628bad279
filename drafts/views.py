"""The list of drafts, the start and continuation of a draft, and the wizard's pages that are plain
forms: name, source, target, advanced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from assessments.services import connection_test
from drafts import known, services, steps, wizard
from drafts.models import Draft
from drafts.selectors import draft_shown, draft_stake, drafts_for_list
from drafts.wizard import AUTOSAVE, Visit
from replicators.config import InvalidConfig, plugin_of, suggested_for
from replicators.connectors.problems.problem import Severity
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin
from replicators.forms import (
    Field,
    option_fields,
    options_from,
    param_fields,
    params_from,
    picks_fitting,
)
from replicators.pages import go, is_partial, may_edit, may_view, render_page, toasted
from replicators.people import person
from replicators.permissions import can_make, changeable
from replicators.selectors import plugin_params, plugins
from replicators.services import params_of

TAKE_WHAT = "Choose the replicator whose connection is to be used."
NAME_HELP = "How people find it: for example what it copies and where to."


@may_view
@require_GET
def drafts(request: HttpRequest) -> HttpResponse:
    """List drafts that are not yet replicators."""
    found = drafts_for_list()
    context = {
        "section": "drafts",
        "drafts": found,
        "can_make": can_make(request.user),
        "changeable": changeable(request.user, found),
    }
    return render(request, "drafts/drafts.html", context)


@may_edit
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask first, and show what is lost; then delete the draft."""
    draft = get_object_or_404(Draft, pk=pk)
    if request.method == "GET":
        context = {"section": "drafts", "draft": draft, "stake": draft_stake(draft)}
        panel = "drafts/partials/_draft_delete.html"
        return render_page(request, "drafts/draft_delete.html", panel, context)
    services.draft_delete(draft=draft)
    return go(request, "drafts:drafts", f"The draft {draft} is deleted.")


@may_edit
@require_GET
def resume(request: HttpRequest, pk: str) -> HttpResponse:
    """Continue a draft at the page where it was left."""
    visit = wizard.opened(request, pk, "name")
    if isinstance(visit, HttpResponse):
        return visit
    return go(request, wizard.step_url(visit.draft, steps.resumed_at(visit.draft)))


@may_edit
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponseBase:
    """The first page of a new draft. The first typed value makes the draft; from then on the form
    names it."""
    known = request.POST.get("draft", "")
    if known:
        return name(request, _uuid(known))
    draft = Draft()
    visit = Visit(request, draft, "name")
    if request.method == "POST":
        fields = _name_fields(request.POST)
        visit.errors = steps.faults(Draft(**fields), "name") if visit.act == "next" else {}
        if not visit.errors and _is_made(visit, fields):
            if visit.act == AUTOSAVE:
                return _begun(visit)
            return wizard.moved(visit) or go(request, wizard.step_url(visit.draft, "name"))
        visit.status, visit.typed = 422, fields
        if visit.act == AUTOSAVE:
            return wizard.saved(visit, reported=_name_reported(visit), draft=None)
    context = {**_name_context(visit), "draft": None, "url": reverse("drafts:new")}
    context["steps"] = steps.steps_of(None, "name")
    return wizard.show(visit, "drafts/partials/_name.html", context)


def _is_made(visit: Visit, fields: dict[str, Any]) -> bool:
    """Whether a draft exists now. It does not if the typed values can't be stored."""
    try:
        visit.draft = services.draft_create(actor=person(visit.request), **fields)
    except InvalidConfig as err:
        visit.errors = err.errors
        return False
    return True


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise Http404 from None


def _begun(visit: Visit) -> HttpResponse:
    """The answer to the first autosave: the page becomes the draft's page."""
    response = wizard.saved(visit, reported=_name_reported(visit))
    response["HX-Replace-Url"] = visit.url
    return response


def _name_reported(visit: Visit) -> list[Field]:
    errors = visit.errors or (steps.faults(visit.draft, "name") if visit.draft.name else {})
    return [
        Field("name", "Name", error=name_fault(errors), help=NAME_HELP),
        Field("description", "Description", error=description_fault(errors)),
    ]


@wizard.page("name")
def name(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The page for the replicator's name."""
    if request.method == "POST" and wizard.save(visit, _name_fields(request.POST)):
        done = wizard.moved(visit)
        if done:
            return done
    if visit.act == AUTOSAVE:
        return wizard.saved(visit, reported=_name_reported(visit))
    return wizard.show(visit, "drafts/partials/_name.html", _name_context(visit))


def _name_fields(post: QueryDict) -> dict[str, Any]:
    return {
        "name": post.get("name", "").strip(),
        "description": post.get("description", "").strip(),
    }


def _name_context(visit: Visit) -> dict[str, Any]:
    draft = visit.draft
    stored = {"name": draft.name, "description": draft.description}
    return {
        "values": visit.typed or stored,
        "name_error": name_fault(visit.errors),
        "description_error": description_fault(visit.errors),
        "name_help": NAME_HELP,
    }


def name_fault(errors: Mapping[str, str]) -> str:
    """The fault in the name, as a sentence."""
    text = errors.get("name", "")
    if text == "is required":
        return "Give it a name."
    return f"The name {text}." if text.startswith("must ") else text


def description_fault(errors: Mapping[str, str]) -> str:
    """The fault in the description, as a sentence."""
    text = errors.get("description", "")
    return f"The description {text}." if text else ""


@sensitive_post_parameters()
@may_edit
@require_http_methods(["GET", "POST"])
def connector(request: HttpRequest, pk: str, role: str) -> HttpResponse:
    """The page of the source or the target: a form made from the plugin's parameters, its help, and
    a test."""
    visit = wizard.opened(request, pk, role)
    if isinstance(visit, HttpResponse):
        return visit
    tested: dict[str, Any] = {}
    if visit.act == "take":
        return _take(visit, role)
    if request.method == "POST" and wizard.save(visit, _connector_fields(visit, role)):
        done = wizard.moved(visit)
        if done:
            return done
        if visit.act == "test":
            tested = _test(visit, role)
    context = {**_connector_context(visit, role), **tested}
    if visit.act == AUTOSAVE:
        return wizard.saved(visit, reported=_reported(visit, role, context), **context)
    return wizard.show(visit, "drafts/partials/_connector.html", context)


def _take(visit: Visit, role: str) -> HttpResponse:
    """Fill the form in from a replicator that already has such a connection. Its secrets never
    reach a page."""
    request, panel = visit.request, "drafts/partials/_connector.html"
    found = known.taken(role, request.POST.get("from", ""), person(request))
    if found is None:
        visit.status, visit.typed = 422, _connector_fields(visit, role)
        context = {**_connector_context(visit, role), "take_error": TAKE_WHAT}
        return wizard.show(visit, panel, context)
    if not wizard.save(visit, found[1]):
        visit.typed = {}
        return wizard.show(visit, panel, _connector_context(visit, role))
    text = f"Filled in from {found[0]}."
    if not is_partial(request):
        return go(request, visit.url, text)
    return toasted(wizard.show(visit, panel, _connector_context(visit, role)), text)


def _reported(visit: Visit, role: str, context: Mapping[str, Any]) -> list[Field]:
    """The form's fields. Filled-in fields show their faults."""
    values = context["values"]
    faults = steps.faults(visit.draft, role)
    errors = {k: v for k, v in faults.items() if values.get(k.removeprefix(f"{role}."))}
    errors |= visit.errors
    return param_fields(role, context["kind"], values, errors)


def _connector_fields(visit: Visit, role: str) -> dict[str, Any]:
    post = visit.request.POST
    kind = post.get(f"{role}_kind", "")
    shown = _plugins(visit, role)
    if kind not in {p.name for p in shown}:
        kind = _kind(visit, role)
    params = params_from(post, role, kind)
    if visit.act == "kind":
        # Untyped values, such as the other kind's default port, are not carried over.
        others = [q for p in shown if p.name != kind for q in plugin_params(p)]
        untyped = {(q.name, str(q.default)) for q in others}
        params = {n: v for n, v in params.items() if (n, str(v)) not in untyped}
    return {f"{role}_kind": kind, f"{role}_params": params}


def _plugins(visit: Visit, role: str) -> list[SourcePlugin | TargetPlugin]:
    """The plugins that this user may choose."""
    user = visit.request.user
    return [p for p in plugins(role) if role == "source" or can_make(user, p.name)]


def _kind(visit: Visit, role: str) -> str:
    first = next((p.name for p in _plugins(visit, role)), "")
    return getattr(visit.draft, f"{role}_kind") or first


def _test(visit: Visit, role: str) -> dict[str, Any]:
    kind = _kind(visit, role)
    try:
        problems = connection_test(role=role, kind=kind, params=params_of(visit.draft, role))
    except InvalidConfig as err:
        visit.status, visit.errors = 422, err.errors
        return {}
    return {
        "is_tested": True,
        "works": all(p.severity != Severity.ERROR for p in problems),
        "problems": [p.to_json() for p in problems],
    }


def _connector_context(visit: Visit, role: str) -> dict[str, Any]:
    stored = draft_shown(visit.draft)
    kind = visit.typed.get(f"{role}_kind") or _kind(visit, role)
    values = visit.typed.get(f"{role}_params") or stored[f"{role}_params"]
    plugin, shown = plugin_of(role, kind), _plugins(visit, role)
    return {
        "role": role,
        "kind": kind,
        "plugin": plugin,
        "plugins": shown,
        "forms": [{"name": p.name, "fields": param_fields(role, p.name, {}, {})} for p in shown],
        "values": values,
        "fields": param_fields(role, kind, values, visit.errors),
        "help": plugin.setup(values),
        "known": known.known(role, person(visit.request)),
        "is_copied": role == "target" and "copied" in visit.request.GET,
    }


@wizard.page("advanced")
def advanced(request: HttpRequest, visit: Visit) -> HttpResponse:
    """The page of options that have good defaults."""
    defaults = suggested_for(visit.draft.target_kind, params_of(visit.draft, "target"))
    fields = {"options": options_from(request.POST, defaults)}
    if request.method == "POST" and wizard.save(visit, fields):
        done = wizard.moved(visit)
        if done:
            return done
    values = visit.typed.get("options") or visit.draft.options
    if visit.act == AUTOSAVE:
        reported = option_fields(values, steps.faults(visit.draft, "advanced"), defaults)
        return wizard.saved(visit, reported=reported)
    found = picks_fitting(option_fields(values, visit.errors, defaults), visit.draft.target_kind)
    context = {"options": found}
    return wizard.show(visit, "drafts/partials/_advanced.html", context)
