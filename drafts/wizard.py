"""Shared by all pages of the wizard: open the draft, save the typed values, move on, show the page
or a panel of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods

from assessments.services import problem_of
from drafts import services, steps
from drafts.models import Draft
from replicators.config import InvalidConfig, plugin_of
from replicators.connectors.problems.errors import ReplicationError
from replicators.pages import View, go, is_partial, may_edit
from replicators.services import params_of

AUTOSAVE = "autosave"


@dataclass(slots=True)
class Visit:
    """One request to one page of one draft. If the form's version is old, `conflict` is the draft's
    newest version, and `typed` is what was posted. The page then shows `typed` instead of the
    stored values."""

    request: HttpRequest
    draft: Draft
    step: str
    status: int = 200
    conflict: int | None = None
    errors: dict[str, str] = field(default_factory=dict)
    typed: dict[str, Any] = field(default_factory=dict)

    @property
    def act(self) -> str:
        return self.request.POST.get("act", "save") if self.request.method == "POST" else ""

    @property
    def url(self) -> str:
        return step_url(self.draft, self.step)


def step_url(draft: Draft, step: str) -> str:
    """The address of a page in the wizard."""
    return reverse(f"drafts:draft-{step}", args=[draft.pk])


def opened(request: HttpRequest, pk: str, step: str) -> Visit | HttpResponse:
    """The draft's page, or a redirect to the replicator that the draft became. If the key for its
    secrets or a connector's plugin is missing, a page that says so."""
    draft = get_object_or_404(Draft, pk=pk)
    if draft.replicator_id:
        return go(request, reverse("runners:replicator", args=[draft.replicator_id]))
    try:
        for role in ("source", "target"):
            params_of(draft, role)
            kind = getattr(draft, f"{role}_kind")
            if kind:
                plugin_of(role, kind)
    except ReplicationError as err:
        context = {"section": "drafts", "draft": draft, "problem": problem_of(err).to_json()}
        return render(request, "drafts/unreadable.html", context, status=409)
    return Visit(request, draft, step)


def page(step: str) -> Callable[[Callable[[HttpRequest, Visit], HttpResponse]], View]:
    """Decorates a view of one page of a draft, by GET and POST, for people who may edit. The view
    gets the visit once the draft is open."""

    def made(view: Callable[[HttpRequest, Visit], HttpResponse]) -> View:
        @may_edit
        @require_http_methods(["GET", "POST"])
        @wraps(view)
        def shown(request: HttpRequest, pk: str) -> HttpResponse:
            visit = opened(request, pk, step)
            if isinstance(visit, HttpResponse):
                return visit
            try:
                return view(request, visit)
            except (
                Draft.DoesNotExist
            ) as err:  # deleted, or deployed, by somebody else while a server was asked
                raise Http404 from err
            except services.DraftDeployed:
                visit.draft.refresh_from_db()
                return go(request, reverse("runners:replicator", args=[visit.draft.replicator_id]))

        return shown

    return made


def version_of(post: QueryDict) -> int:
    """The draft's version that the form was made from. *Keep mine* sends the newest version
    instead."""
    text = post.get("keep") or post.get("version", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def save(visit: Visit, fields: dict[str, Any]) -> bool:
    """Store the typed values. Returns False if another tab was first (409) or they can't be stored
    at all (422)."""
    try:
        visit.draft = services.draft_update(
            draft=visit.draft, version=version_of(visit.request.POST), **fields
        )
    except services.StaleDraft as err:
        visit.status, visit.conflict, visit.typed = 409, err.version, fields
    except InvalidConfig as err:
        visit.status, visit.errors, visit.typed = 422, err.errors, fields
    return visit.status == 200


def moved(visit: Visit) -> HttpResponse | None:
    """A redirect if the pressed button leads to another page. *Next* stays on the page, with its
    faults marked, until the page is done."""
    act, request, draft = visit.act, visit.request, visit.draft
    if act == "next":
        visit.errors = steps.faults(draft, visit.step)
        if visit.errors:
            visit.status = 422
            return None
        return go(request, step_url(draft, steps.after(visit.step)))
    if act == "back":
        return go(request, step_url(draft, steps.before(visit.step)))
    if act == "close":
        return go(request, "drafts:drafts", f"{draft} is kept as a draft.")
    name = act.removeprefix("goto:")
    return go(request, step_url(draft, name)) if act != name and name in steps.NAMES else None


def refused(visit: Visit, text: str, step: str) -> HttpResponse:
    """Redirect to the page where something must be corrected, and say why."""
    messages.error(visit.request, text)
    return go(visit.request, step_url(visit.draft, step))


def saved(visit: Visit, **context: Any) -> HttpResponse:
    """The answer to an autosave: the parts of the page that show the result."""
    context = {**_frame(visit), "is_saved": visit.status == 200, **context}
    return render(visit.request, "drafts/partials/_saved.html", context, status=visit.status)


def show(visit: Visit, panel: str, context: dict[str, Any]) -> HttpResponse:
    """The whole page; for HTMX, only its panel and the parts around it."""
    context = {**_frame(visit), "panel": panel, **context}
    if is_partial(visit.request):
        template = "drafts/partials/_panel.html"
        context["is_saved"] = visit.request.method == "POST" and not _is_unsaved(visit)
    else:
        template = "drafts/step.html"
    if not is_partial(visit.request) or visit.request.method == "POST":
        context["steps"] = steps.steps_of(visit.draft, visit.step)
    response = render(visit.request, template, context, status=visit.status)
    patch_vary_headers(response, ("HX-Request",))
    response["Cache-Control"] = "no-store"
    return response


def _is_unsaved(visit: Visit) -> bool:
    return bool(visit.typed) or visit.conflict is not None


def _frame(visit: Visit) -> dict[str, Any]:
    draft = visit.draft
    version = visit.request.POST.get("version") if visit.conflict else draft.version
    return {
        "section": "drafts",
        "draft": draft,
        "step": visit.step,
        "step_title": steps.title_of(visit.step),
        "url": visit.url,
        "version": version,
        "conflict": visit.conflict,
        "errors": visit.errors,
        "is_unsaved": _is_unsaved(visit),
        "is_first": visit.step == steps.NAMES[0],
        "is_last": visit.step == steps.NAMES[-1],
    }
