"""What people do on the pages: start, pause, resume, retry, delete, re-sync. Each calls one service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST

from replicators.connectors.errors import ReplicationError
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.pages import View, came_from, go, is_partial, may_edit, render_page, toasted
from replicators.people import person
from runners import discovery, panels, retrying, services
from runners.models import Table
from runners.new_tables import NewTable
from runners.removal import what_goes
from runners.rewinding import parse_moment, rewind_window
from runners.services import IllegalTransition


def answer(
    request: HttpRequest, found: Replicator, act: Callable[[], Any], done: str
) -> HttpResponse:
    """Do `act`, then the panels of the page that it came from, with `done` as a toast; without HTMX, that page; 409 with the
    reason where it is not possible."""
    try:
        act()
    except IllegalTransition as err:
        return _refused(request, found, err.message)
    except (ReplicationError, InvalidConfig) as err:
        return _refused(request, found, _told(err))
    except (Replicator.DoesNotExist, Table.DoesNotExist, NewTable.DoesNotExist) as err:
        raise Http404 from err
    if not is_partial(request):
        return go(request, _back(request) or found, done)
    return toasted(panels.refreshed(request, found), done)


def _told(error: ReplicationError | InvalidConfig) -> str:
    """What keeps it from being done, such as a connector that is gone, as sentences."""
    if isinstance(error, InvalidConfig):
        return " ".join(error.errors.values())
    return f"{error.message.text} {error.message.suggestion}".strip()


def _back(request: HttpRequest) -> str:
    """The page of ours that it was done on; empty where the browser doesn't say, and where that page only asked about it."""
    url = came_from(request)
    return url if urlsplit(url).path != request.path else ""


def _refused(request: HttpRequest, found: Replicator, text: str) -> HttpResponse:
    if is_partial(request):
        response = panels.refreshed(request, found, refused=text, status=409)
    else:
        context = panels.overview_context(request, found, {}) | {"refused": text}
        context |= panels.charts_context(found, {})
        response = render(request, "runners/replicator.html", context, status=409)
    return toasted(response, text, "error")


def _act(service: Callable[..., Any], done: str) -> View:
    @may_edit
    @require_POST
    def view(request: HttpRequest, pk: str) -> HttpResponse:
        found = get_object_or_404(Replicator, pk=pk)
        text = done.format(name=found.name)
        return answer(
            request, found, lambda: service(replicator=found, actor=person(request)), text
        )

    return view


def _table_act(service: Callable[..., Any], done: str) -> View:
    @may_edit
    @require_POST
    def view(request: HttpRequest, pk: str) -> HttpResponse:
        found = get_object_or_404(Replicator, pk=pk)
        schema, name = request.POST.get("schema", ""), request.POST.get("table", "")
        text = done.format(table=f"{schema}.{name}")
        return answer(
            request,
            found,
            lambda: service(replicator=found, schema=schema, name=name, actor=person(request)),
            text,
        )

    return view


start = _act(services.replicator_start, "{name} starts.")
pause = _act(services.replicator_pause, "{name} pauses: it finishes what it has read, then stops.")
resume = _act(services.replicator_resume, "{name} resumes.")
retry = _act(retrying.replicator_retry, "{name} is tried again now.")
table_resync = _table_act(services.table_resync, "{table} will be copied afresh.")
new_table_ignore = _table_act(discovery.new_table_ignore, "{table} is not asked about again.")


@may_edit
@require_http_methods(["GET", "POST"])
def table_remove(request: HttpRequest, pk: str) -> HttpResponse:
    """Asks first; then follows a table no longer; `drop_target=true` takes the target's table too."""
    found = get_object_or_404(Replicator, pk=pk)
    if request.method == "GET":
        return _table_remove_asks(request, found)
    schema, name = request.POST.get("schema", ""), request.POST.get("table", "")
    keep = request.POST.get("drop_target") != "true"
    return answer(
        request,
        found,
        lambda: services.table_remove(
            replicator=found, schema=schema, name=name, actor=person(request), keep_target=keep
        ),
        f"{schema}.{name} is followed no longer.",
    )


def _table_remove_asks(request: HttpRequest, found: Replicator) -> HttpResponse:
    schema, name = request.GET.get("schema", ""), request.GET.get("table", "")
    row = get_object_or_404(Table.objects.shown(), replicator=found, schema_name=schema, name=name)
    context = {"section": "replicators", "replicator": found, "row": row}
    return render_page(
        request, "runners/table_remove.html", "runners/partials/_table_remove.html", context
    )


@may_edit
@require_http_methods(["GET", "POST"])
def table_rewind(request: HttpRequest, pk: str) -> HttpResponse:
    """Asks for the time, and says which can be reached; then rewinds the table to it. Times are UTC."""
    found = get_object_or_404(Replicator, pk=pk)
    asked = request.GET if request.method == "GET" else request.POST
    schema, name = asked.get("schema", ""), asked.get("table", "")
    if request.method == "GET":
        row = get_object_or_404(
            Table.objects.shown(), replicator=found, schema_name=schema, name=name
        )
        context = {"section": "replicators", "replicator": found, "row": row}
        try:
            context["window"] = rewind_window(found)
        except (ReplicationError, InvalidConfig) as err:
            return _refused(request, found, _told(err))
        return render_page(
            request, "runners/table_rewind.html", "runners/partials/_table_rewind.html", context
        )
    at = parse_moment(asked.get("at", ""))
    if at is None:
        return _refused(request, found, "Enter the time as year, month, day, hour and minute.")
    return answer(
        request,
        found,
        lambda: services.table_rewind(
            replicator=found, schema=schema, name=name, at=at, actor=person(request)
        ),
        f"{schema}.{name} will be rewound.",
    )


table_retry = _table_act(services.table_retry, "{table} is tried again now.")
table_replay = _table_act(services.table_replay, "The parked rows of {table} will be replayed.")


@may_edit
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, pk: str) -> HttpResponse:
    """Asks first, and names what goes; then deletes. Data in the target goes only where that is said outright. The replicator's own
    page says how far that is."""
    found = get_object_or_404(Replicator, pk=pk)
    if request.method == "POST":
        keep = request.POST.get("keep_target") != "false"
        services.replicator_delete(replicator=found, actor=person(request), keep_target=keep)
        return go(request, found, f"{found.name} is being deleted.")
    context = {"section": "replicators", "replicator": found, "objects": what_goes(found)}
    return render_page(
        request, "runners/replicator_delete.html", "runners/partials/_delete.html", context
    )
