"""The page that changes a deployed replicator's name, connections and options. It has the wizard's
fields and saves them together."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from assessments.services import connection_test, problem_of
from drafts.views import NAME_HELP, description_fault, name_fault
from replicators.config import (
    ROLES,
    InvalidConfig,
    mode_of,
    place_params,
    plugin_of,
    suggested_for,
)
from replicators.connectors.model.modes import KEEPS_PAST, text_of
from replicators.connectors.params import MASK, Param, cleared, describe
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import ProblemJson, Severity
from replicators.forms import (
    Field,
    option_fields,
    options_from,
    param_fields,
    params_from,
    picks_fitting,
)
from replicators.models import Replicator
from replicators.options import Options
from replicators.pages import go, may_edit, render_page
from replicators.people import person
from replicators.services import NameTaken, params_merged, params_of, params_shown
from runners.definition import (
    AnotherServer,
    Change,
    ChangeRefused,
    replicator_change,
    secrets_asked,
)
from runners.models import Run
from runners.pages.panels import version_of
from runners.selectors import replicator_view
from runners.services import replicator_retry
from runners.transitions import IllegalTransition

_DEFINITION = (
    "name", "description", "source_params", "source_secrets", "target_params", "target_secrets",
    "options",
)  # fmt: skip
Form = dict[str, Any]
"""Arguments of `replicator_change`: the typed values, or the stored ones with secrets masked."""


@dataclass(slots=True)
class _Page:
    """What the form shows besides the replicator: the typed values and the result of the pressed
    button."""

    found: Replicator
    form: Form
    status: int = 200
    errors: Mapping[str, str] = field(default_factory=dict)
    problems: list[ProblemJson] = field(default_factory=list)
    refused: str = ""
    is_stale: bool = False
    may_accept: bool = False
    tested: str = ""
    reported: list[ProblemJson] = field(default_factory=list)


@sensitive_post_parameters()
@may_edit
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, pk: str) -> HttpResponse:
    """The form. It saves, saves and starts again, or tests a connection with the typed values."""
    found = get_object_or_404(Replicator, pk=pk)
    if found.deleting_since is not None:
        messages.error(request, "This replicator is being deleted.")
        return go(request, found)
    try:
        for role in ROLES:
            plugin_of(role, getattr(found, f"{role}_kind"))
    except ReplicationError as err:
        return _no_plugin(request, found, err)
    if request.method == "GET":
        return _show(request, _Page(found, _stored(found)))
    page, act = _Page(found, _typed(request.POST, found)), request.POST.get("act", "")
    if act.startswith("test:") and act[5:] in ROLES:
        _test(page, act[5:], person(request))
        return _show(request, page)
    if request.POST.get("version") != _version(found):
        page.status, page.is_stale = 409, True
        return _show(request, page)
    change = _save(request, page, restart=act == "restart")
    if change is None:
        return _show(request, page)
    return go(request, _back(found), _retried(request, change) if act == "retry" else _done(change))


def _retried(request: HttpRequest, change: Change) -> str:
    """Retry the replicator now. A new connection alone has already caused a retry."""
    with suppress(IllegalTransition):
        replicator_retry(replicator=change.replicator, actor=person(request))
    return f"{change.replicator.name} is saved, and tried again now."


def _save(request: HttpRequest, page: _Page, *, restart: bool) -> Change | None:
    """The change; None if it failed, with the reason on the page."""
    accepts = "accept_lost_position" in request.POST
    try:
        return replicator_change(
            replicator=page.found,
            actor=person(request),
            restart=restart,
            accept_lost_position=accepts,
            **page.form,
        )
    except (InvalidConfig, NameTaken) as err:
        page.status, page.errors = 422, err.errors
    except ChangeRefused as err:
        page.status, page.refused = 409, str(err)
        page.problems = [p.to_json() for p in err.problems]
    except ReplicationError as err:
        page.status, page.problems = 409, [problem_of(err).to_json()]
        page.may_accept = isinstance(err, AnotherServer)
        page.errors = getattr(err, "errors", {})
    return None


def _done(change: Change) -> str:
    """A sentence on what was done, and when it applies."""
    name, is_wanted = change.replicator.name, change.replicator.desired_state == "running"
    if change.is_restarted:
        return f"{name} is saved, and starts again."
    if not change.fields:
        return "Nothing was changed."
    is_live = Run.objects.active().filter(replicator=change.replicator).exists()
    if is_live and change.waits_for_start:
        return f"{name} is saved. It goes on as before until it starts next."
    if is_wanted and not is_live and change.is_of_connection:
        return f"{name} is saved, and tried again now."
    return f"{name} is saved."


def _test(page: _Page, role: str, actor: User | None) -> None:
    found, given = page.found, page.form[f"{role}_params"]
    kind = getattr(found, f"{role}_kind")
    try:
        with secrets_asked(found, actor):
            params = params_merged(found, role, given)
        page.reported = [p.to_json() for p in connection_test(role=role, kind=kind, params=params)]
    except InvalidConfig as err:
        page.status, page.errors = 422, err.errors
    else:
        page.tested = role


def _is_readable(found: Replicator, role: str) -> bool:
    try:
        params_of(found, role)
    except ReplicationError:
        return False
    return True


def _changeable(found: Replicator, role: str) -> list[Param]:
    kind = getattr(found, f"{role}_kind")
    fixed = place_params(kind) if role == "target" else {}
    return [p for p in describe(plugin_of(role, kind).params) if p.name not in fixed]


def _stored(found: Replicator) -> Form:
    form: Form = {n: getattr(found, n) for n in ("name", "description", "options")}
    for role in ROLES:
        is_readable = _is_readable(found, role)
        shown = params_shown(found, role)
        form[f"{role}_params"] = {k: v for k, v in shown.items() if is_readable or v != MASK}
    return form


def _typed(post: QueryDict, found: Replicator) -> Form:
    """The form's values. An emptied field returns to its default. An empty secret whose stored
    value can't be read any more counts as unchanged, since it may have had a value."""
    form: Form = {n: post.get(n, "").strip() for n in ("name", "description")}
    typed_options = options_from(post, _defaults(found))
    form["options"] = {**dict.fromkeys(f.name for f in fields(Options)), **typed_options}
    for role in ROLES:
        typed = params_from(post, role, getattr(found, f"{role}_kind"))
        is_readable = _is_readable(found, role)
        form[f"{role}_params"] = {
            p.name: typed.get(p.name, MASK if p.secret and not is_readable else None)
            for p in _changeable(found, role)
        }
    return form


def _defaults(found: Replicator) -> dict[str, Any]:
    """The options' defaults that the target has of its own; empty where its secrets are lost."""
    if not _is_readable(found, "target"):
        return {}
    return suggested_for(found.target_kind, params_of(found, "target"))


def _version(found: Replicator) -> str:
    """A value that differs after each change of what the form shows."""
    return version_of(*(getattr(found, name) for name in _DEFINITION))


def _back(found: Replicator) -> str:
    return reverse("runners:replicator-configuration", args=[found.pk])


def _show(request: HttpRequest, page: _Page) -> HttpResponse:
    found, form = page.found, page.form
    mode = mode_of(found.target_kind, "", Options.parse(found.options).mode)
    options = {k: v for k, v in form["options"].items() if v is not None}
    lost = [role for role in ROLES if not _is_readable(found, role)]
    unreadable = problem_of(ReplicationError("config:secrets-unreadable")).to_json()
    context = {
        "section": "replicators",
        "replicator": found,
        "url": request.path,
        "back_url": _back(found),
        "version": _version(found),
        "values": form,
        "name_error": name_fault(page.errors),
        "description_error": description_fault(page.errors),
        "name_help": NAME_HELP,
        "parts": [_part(page, role) for role in ROLES],
        "options": picks_fitting(
            option_fields(options, page.errors, _defaults(found)), found.target_kind
        ),
        "keeps_past": text_of(mode).label.lower() if mode in KEEPS_PAST else "",
        "is_live": found.desired_state == "running"
        and Run.objects.active().filter(replicator=found).exists(),
        "may_retry": replicator_view(found).may_retry,
        "problems": ([unreadable] if lost else []) + page.problems,
        "refused": page.refused,
        "is_stale": page.is_stale,
        "may_accept": page.may_accept,
    }
    panel = "drafts/partials/_definition.html"
    response = render_page(request, "drafts/definition.html", panel, context, page.status)
    response["Cache-Control"] = "no-store"
    return response


def _part(page: _Page, role: str) -> dict[str, Any]:
    found, kind = page.found, getattr(page.found, f"{role}_kind")
    values = {k: "" if v is None else v for k, v in page.form[f"{role}_params"].items()}
    names = {f"{role}.{p.name}" for p in _changeable(found, role)}
    shown: list[Field] = param_fields(role, kind, values, page.errors)
    is_tested = page.tested == role
    return {
        "role": role,
        "plugin": plugin_of(role, kind),
        "fields": [f for f in shown if f.id in names],
        "place": [
            (f.label, cleared(found.target_params.get(f.id.partition(".")[2], "")))
            for f in shown
            if f.id not in names
        ],
        "is_tested": is_tested,
        "works": is_tested and all(p["severity"] != Severity.ERROR for p in page.reported),
        "problems": page.reported if is_tested else [],
    }


def _no_plugin(request: HttpRequest, found: Replicator, err: ReplicationError) -> HttpResponse:
    context = {
        "section": "replicators",
        "replicator": found,
        "back_url": _back(found),
        "gone": problem_of(err).to_json(),
    }
    return render(request, "drafts/definition.html", context, status=409)
