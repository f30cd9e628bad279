"""Pages of the past: one replicator's log, activity and configuration, and the activity of all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import require_GET

from assessments.services import problem_of
from replicators.config import Options, plugin_of
from replicators.connectors.params import describe
from replicators.connectors.problems.errors import ReplicationError
from replicators.forms import option_fields
from replicators.models import Replicator
from replicators.pages import is_partial, may_view, render_page
from replicators.services import params_shown, replicator_export
from runners import selectors
from runners.logs import read
from runners.models import Event, Table
from runners.pages import panels
from runners.tables.conflicts import conflicts_of
from runners.tables.quarantine import QUARANTINED_SHOWN, quarantined_page

EVENTS = 100
RUNS = 20


def _cursor(request: HttpRequest, name: str) -> int:
    raw = request.GET.get(name, "")
    if not (raw.isascii() and raw.isdigit()):
        return 0
    return int(raw) if len(raw) < 19 else 2**62


@panels.page
def log(request: HttpRequest, found: Replicator) -> HttpResponseBase:
    """The filtered log: by default its last lines; with `after` the lines after that cursor, with
    `before` those before it. `download` returns the whole log as text."""
    query = {k: request.GET.get(k, "").strip() for k in ("level", "table", "search")}
    if "download" in request.GET:
        return _download(found, query)
    after, before = _cursor(request, "after"), _cursor(request, "before")
    lines = read.log_lines(
        found,
        after=after,
        before=before,
        level=query["level"],
        table=query["table"],
        search=query["search"],
    )
    if after and not lines:
        return HttpResponse(status=204)
    context: dict[str, object] = {
        "replicator": found,
        "lines": lines,
        "after": lines[-1].pk if lines else 0,
        "before": lines[0].pk if len(lines) == read.LOG_LINES else 0,
        "is_earlier": bool(before),
        "query": query,
    }
    if is_partial(request) and (after or before):
        return render_page(request, "", "runners/partials/_log_lines.html", context)
    context |= {
        **panels.head_context(request, found, "logs"),
        "levels": read.log_levels(found),
        "tables": read.log_tables(found),
    }
    return render_page(
        request, "runners/replicator_log.html", "runners/partials/_log.html", context
    )


@panels.page
def quarantined(request: HttpRequest, found: Replicator) -> HttpResponse:
    """A table's quarantined rows, and the reason of each."""
    schema, name = request.GET.get("schema", ""), request.GET.get("table", "")
    raw = request.GET.get("after", "")
    after = int(raw) if re.fullmatch("-?[0-9]{1,19}", raw) else None
    try:
        table, rows = quarantined_page(
            found, schema=schema, name=name, after=after, limit=QUARANTINED_SHOWN
        )
    except Table.DoesNotExist as err:
        raise Http404 from err
    more = rows[-1].sequence if len(rows) == QUARANTINED_SHOWN else None
    context = {
        **panels.head_context(request, found, "tables"),
        "row": table,
        "quarantined": rows,
        "more": more,
    }
    return render_page(
        request,
        "runners/replicator_quarantined.html",
        "runners/partials/_quarantined.html",
        context,
    )


@panels.page
def conflicts(request: HttpRequest, found: Replicator) -> HttpResponse:
    """The last changes that lost at a target that is replicated back."""
    context: dict[str, Any] = {**panels.head_context(request, found, "conflicts")}
    try:
        context["conflicts"] = conflicts_of(found)
    except ReplicationError as err:
        context["fault"] = problem_of(err).to_json()
    return render_page(
        request, "runners/replicator_conflicts.html", "runners/partials/_conflicts.html", context
    )


class EventsContext(panels.Versioned):
    """A list of events."""

    events: Sequence[Event]
    before: int
    is_earlier: bool
    is_people: bool
    with_replicator: bool


class PartShown(TypedDict):
    """A connector of a replicator: its role, its name, and its parameters with their labels."""

    role: str
    label: str
    rows: list[tuple[str, Any]]


def _download(found: Replicator, query: dict[str, str]) -> StreamingHttpResponse:
    def text() -> Iterator[str]:
        for line in read.log_pages(found, **query):
            about = f" {line.table}" if line.table else ""
            yield f"{line.at:%Y-%m-%dT%H:%M:%S.%fZ} {line.level}{about} {line.text}\n"

    response = StreamingHttpResponse(text(), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{_file_name(found)}.log"'
    return response


def _events(request: HttpRequest, found: Replicator | None) -> EventsContext:
    before = _cursor(request, "before")
    is_people = request.GET.get("by") == "people"
    events = selectors.events_shown(found, before=before, is_people=is_people, limit=EVENTS)
    return {
        "events": events,
        "before": events[-1].pk if len(events) == EVENTS else 0,
        "is_earlier": bool(before),
        "is_people": is_people,
        "with_replicator": found is None,
        "version": panels.version_of(selectors.events_version(found), is_people),
    }


def _events_page(
    request: HttpRequest, page: str, panel: str, found: EventsContext, **around: object
) -> HttpResponse:
    """The list of events on its page; `around`: what else the page shows."""
    if is_partial(request) and request.GET.get("version") == found["version"]:
        return HttpResponse(status=204)
    is_more = found["is_earlier"] and is_partial(request)
    panel = "runners/partials/_event_lines.html" if is_more else panel
    return render_page(request, page, panel, {**around, **found})


@panels.page
def replicator_activity(request: HttpRequest, found: Replicator) -> HttpResponse:
    """What happened to one replicator, and its runs."""
    return _events_page(
        request,
        "runners/replicator_activity.html",
        "runners/partials/_activity.html",
        _events(request, found),
        **panels.head_context(request, found, "activity"),
        runs=selectors.runs_shown(found, limit=RUNS),
    )


@may_view
@require_GET
def activity(request: HttpRequest) -> HttpResponse:
    """What happened to all replicators, newest first."""
    events = _events(request, None)
    return _events_page(
        request,
        "runners/activity.html",
        "runners/partials/_events.html",
        events,
        section="activity",
    )


@may_view
@require_GET
def configuration(request: HttpRequest, pk: str) -> HttpResponse:
    """The definition, readable and as JSON, secrets masked; `?download` gives the JSON file."""
    found = get_object_or_404(Replicator, pk=pk)
    exported = replicator_export(found)
    if "download" in request.GET:
        response = JsonResponse(exported, json_dumps_params={"indent": 2})
        response["Content-Disposition"] = f'attachment; filename="{_file_name(found)}.json"'
        return response
    context = {
        **panels.head_context(request, found, "configuration"),
        "parts": [_part(found, role) for role in ("source", "target")],
        "options": _options(found),
        "exported": json.dumps(exported, indent=2),
    }
    return render(request, "runners/replicator_configuration.html", context)


def _file_name(found: Replicator) -> str:
    """The download's name, from the replicator's name and the time in UTC:
    `shop-to-lakehouse-20260102-030405`."""
    return f"{slugify(found.name) or 'replicator'}-{timezone.now():%Y%m%d-%H%M%S}"


def _part(found: Replicator, role: str) -> PartShown:
    """A connector with its parameters under their labels; where its plugin is missing, under their
    names."""
    kind, values = getattr(found, f"{role}_kind"), params_shown(found, role)
    try:
        plugin = plugin_of(role, kind)
        labels = {p.name: p.label for p in describe(plugin.params)}
        title = plugin.label
    except ReplicationError:
        labels, title = {}, kind
    rows = [(labels.get(name, name), value) for name, value in values.items()]
    return {"role": role.capitalize(), "label": title, "rows": rows}


def _options(found: Replicator) -> list[tuple[str, str, str]]:
    values = Options.parse(found.options).to_json()
    return [(f.title, f.amount, f.about) for f in option_fields(values, {})]
