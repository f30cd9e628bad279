"""Pages of what runs: the list, one replicator, its log, its activity. They read only; `runners.acts` changes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from replicators.models import Replicator
from replicators.pages import is_partial, may_view, render_page
from replicators.permissions import can_edit
from replicators.services import params_shown, replicator_export
from runners import selectors
from runners.models import Event

LIVE_PANEL = "runners/partials/_replicator.html"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_ACTIVITY = 200


def version_of(view: selectors.ReplicatorView) -> str:
    """Changes whenever something that the panel shows changes."""
    shown = {
        "state": [view.shown.label, view.replicator.name, view.lag_seconds],
        "tables": [(t.to_json(), t.row.rows_total, t.row.is_resync_asked) for t in view.tables],
        "error": view.error,
    }
    return hashlib.sha256(json.dumps(shown, default=str).encode()).hexdigest()[:16]


def live_context(request: HttpRequest, replicator: Replicator) -> dict[str, Any]:
    """What the live panel needs, first time and each time after."""
    view = selectors.replicator_view(replicator)
    return {
        "section": "replicators",
        "tab": "tables",
        "view": view,
        "replicator": view.replicator,
        "version": version_of(view),
        "is_editor": can_edit(request.user),
        "is_paused": view.shown.state in {"paused", "stopping"},
        "has_run": view.replicator.runs.exists(),
    }


@may_view
@require_GET
def replicators(request: HttpRequest) -> HttpResponse:
    """All replicators."""
    views = selectors.replicators_for_list()
    digest = hashlib.sha256("".join(version_of(v) for v in views).encode()).hexdigest()[:16]
    if is_partial(request) and request.GET.get("version") == digest:
        return HttpResponse(status=204)
    context = {
        "section": "replicators",
        "views": views,
        "version": digest,
        "is_editor": can_edit(request.user),
    }
    return render_page(
        request, "runners/replicators.html", "runners/partials/_replicators.html", context
    )


@may_view
@require_GET
def replicator(request: HttpRequest, pk: str) -> HttpResponse:
    """One replicator, live; its panel answers 204 when nothing that it shows has changed."""
    found = Replicator.objects.filter(pk=pk).first()
    if found is None and is_partial(request):
        gone = HttpResponse(status=200)
        gone["HX-Redirect"] = reverse("runners:replicators")
        return gone
    context = live_context(request, found or get_object_or_404(Replicator, pk=pk))
    if is_partial(request) and request.GET.get("version") == context["version"]:
        return HttpResponse(status=204)
    return render_page(request, "runners/replicator.html", LIVE_PANEL, context)


@may_view
@require_GET
def log(request: HttpRequest, pk: str) -> HttpResponse:
    """The log, filtered; with `after` only the lines past that cursor, or 204."""
    found = get_object_or_404(Replicator, pk=pk)
    query = {k: request.GET.get(k, "").strip() for k in ("level", "table", "search")}
    raw = request.GET.get("after", "")
    after = min(int(raw), 2**62) if raw.isascii() and raw.isdigit() else 0
    lines = selectors.log_lines(
        found, after=after, level=query["level"], table=query["table"], search=query["search"]
    )
    if after and not lines:
        return HttpResponse(status=204)
    context = {
        "section": "replicators",
        "tab": "log",
        "replicator": found,
        "lines": lines,
        "after": lines[-1].pk if lines else 0,
        "query": query,
        "levels": _LEVELS,
        "tables": [f"{t['schema']}.{t['name']}" for t in found.tables],
    }
    panel = "runners/partials/_log_lines.html" if after else "runners/partials/_log.html"
    return render_page(request, "runners/replicator_log.html", panel, context)


@may_view
@require_GET
def replicator_activity(request: HttpRequest, pk: str) -> HttpResponse:
    """What happened to one replicator."""
    found = get_object_or_404(Replicator, pk=pk)
    context = {
        "section": "replicators",
        "tab": "activity",
        "replicator": found,
        "events": selectors.events(found, limit=_ACTIVITY),
    }
    return render(request, "runners/replicator_activity.html", context)


@may_view
@require_GET
def configuration(request: HttpRequest, pk: str) -> HttpResponse:
    """The definition, readable and as JSON, secrets masked; `?download` gives the JSON file."""
    found = get_object_or_404(Replicator, pk=pk)
    exported = replicator_export(found)
    if "download" in request.GET:
        response = JsonResponse(exported, json_dumps_params={"indent": 2})
        response["Content-Disposition"] = f'attachment; filename="replicator-{found.pk}.json"'
        return response
    context = {
        "section": "replicators",
        "tab": "configuration",
        "replicator": found,
        "source": params_shown(found, "source"),
        "target": params_shown(found, "target"),
        "exported": json.dumps(exported, indent=2),
    }
    return render(request, "runners/replicator_configuration.html", context)


@may_view
@require_GET
def activity(request: HttpRequest) -> HttpResponse:
    """What happened to all replicators, newest first."""
    found = Event.objects.select_related("replicator").order_by("-pk")[:_ACTIVITY]
    return render(request, "runners/activity.html", {"section": "activity", "events": found})
