"""Actions of people on the pages: start, pause, resume, retry, delete, re-sync. Each calls one
service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Severity
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.pages import View, came_from, go, is_partial, may_edit, render_page, toasted
from replicators.people import person
from runners import services
from runners.models import NewTable, Table
from runners.pages import panels
from runners.pages.stakes import replicator_stake, table_stake
from runners.services import IllegalTransition
from runners.supervision.removal import what_goes
from runners.tables import changes, discovery
from runners.tables.rewinding import can_rewind, parse_moment, refusal, rewind_window
from runners.verifications import VerifiedTable

_GONE = (
    Replicator.DoesNotExist,
    Table.DoesNotExist,
    NewTable.DoesNotExist,
    VerifiedTable.DoesNotExist,
)


def answer(
    request: HttpRequest,
    found: Replicator,
    act: Callable[[], Any],
    done: str,
    failed: str,
    to: str = "",
) -> HttpResponse:
    """Do `act`, then answer with the panels of the page that asked and `done` as a toast. Without
    HTMX, or with an address `to`: a redirect to that page. Where the action is not possible: 409
    with `failed` and the reason."""
    try:
        act()
    except IllegalTransition as err:
        return _refused(request, found, failed, err.message)
    except (ReplicationError, InvalidConfig) as err:
        return _refused(request, found, failed, _reported(err))
    except _GONE as err:
        raise Http404 from err
    if to or not is_partial(request):
        return go(request, to or _back(request) or _home(request, found), done)
    return toasted(panels.refreshed(request, found), done)


def _reported(error: ReplicationError | InvalidConfig) -> str:
    """The reasons why the action is not possible, such as a missing connector, as sentences."""
    if isinstance(error, InvalidConfig):
        return ". ".join(f"`{name}` {text}" for name, text in error.errors.items()) + "."
    return f"{error.message.text} {error.message.suggestion}".strip()


def _back(request: HttpRequest) -> str:
    """The address of our page that asked; empty where the browser doesn't send it, or where that
    page only asked for confirmation."""
    url = came_from(request)
    return url if urlsplit(url).path != request.path else ""


def _home(request: HttpRequest, found: Replicator) -> str:
    """The page that an action belongs to: the replicator's tables, or the replicator."""
    tables = reverse("runners:replicator-tables", args=[found.pk])
    return tables if request.path.startswith(tables) else found.get_absolute_url()


def _refused(request: HttpRequest, found: Replicator, failed: str, text: str) -> HttpResponse:
    """Answer that an action was refused. `failed`: what was not done; `text`: why."""
    refused = {"title": failed, "text": text}
    if is_partial(request):
        response = panels.refreshed(request, found, refused=refused, status=409)
    else:
        context = {
            **panels.overview_context(request, found, {}),
            **panels.charts_context(found, {}),
            "refused": refused,
        }
        response = render(request, "runners/replicator.html", context, status=409)
    return toasted(response, f"{failed}. {text}", "error")


def _action(service: Callable[..., Any], done: str, failed: str) -> View:
    @may_edit
    @require_POST
    def view(request: HttpRequest, pk: str) -> HttpResponse:
        found = get_object_or_404(Replicator, pk=pk)
        return answer(
            request,
            found,
            lambda: service(replicator=found, actor=person(request)),
            done.format(name=found.name),
            f"{found.name} {failed}",
        )

    return view


def _table_action(service: Callable[..., Any], done: str, failed: str) -> View:
    @may_edit
    @require_POST
    def view(request: HttpRequest, pk: str) -> HttpResponse:
        found = get_object_or_404(Replicator, pk=pk)
        schema, name = request.POST.get("schema", ""), request.POST.get("table", "")
        return answer(
            request,
            found,
            lambda: service(replicator=found, schema=schema, name=name, actor=person(request)),
            done.format(table=f"{schema}.{name}"),
            f"{schema}.{name} {failed}",
        )

    return view


start = _action(services.replicator_start, "{name} starts.", "was not started")
pause = _action(
    services.replicator_pause,
    "{name} pauses: it finishes what it has read, then stops.",
    "was not paused",
)
resume = _action(services.replicator_resume, "{name} resumes.", "was not resumed")
retry = _action(services.replicator_retry, "{name} is tried again now.", "was not retried")
new_table_ignore = _table_action(
    discovery.new_table_ignore, "{table} is not asked about again.", "was not ignored"
)


def _table_asks(request: HttpRequest, found: Replicator, name: str) -> HttpResponse:
    """The page or dialog `name` that asks for confirmation of an action on a table, with what is at
    stake."""
    schema, table = request.GET.get("schema", ""), request.GET.get("table", "")
    rows = Table.objects.shown()
    row = get_object_or_404(rows, replicator=found, schema_name=schema, name=table)
    context = {"section": "replicators", "replicator": found, "row": row}
    context["stake"] = table_stake(row)
    return render_page(request, f"runners/{name}.html", f"runners/partials/_{name}.html", context)


_resync = _table_action(
    services.table_resync, "{table} will be copied afresh.", "was not re-synced"
)


@may_edit
@require_http_methods(["GET", "POST"])
def table_resync(request: HttpRequest, pk: str) -> HttpResponseBase:
    """Ask for confirmation, with numbers of rows; then copy the table again."""
    if request.method == "POST":
        return _resync(request, pk)
    return _table_asks(request, get_object_or_404(Replicator, pk=pk), "table_resync")


@may_edit
@require_http_methods(["GET", "POST"])
def table_remove(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask for confirmation; then stop copying a table. `drop_target=true` drops the target's table
    too."""
    found = get_object_or_404(Replicator, pk=pk)
    if request.method == "GET":
        return _table_asks(request, found, "table_remove")
    schema, name = request.POST.get("schema", ""), request.POST.get("table", "")
    keep = request.POST.get("drop_target") != "true"
    return answer(
        request,
        found,
        lambda: services.table_remove(
            replicator=found, schema=schema, name=name, actor=person(request), keep_target=keep
        ),
        f"{schema}.{name} is followed no longer.",
        f"{schema}.{name} was not removed",
    )


@may_edit
@require_http_methods(["GET", "POST"])
def table_rewind(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask for the time, and show which times can be reached; then rewind the table to it. Times are
    UTC."""
    found = get_object_or_404(Replicator, pk=pk)
    asked = request.GET if request.method == "GET" else request.POST
    schema, name = asked.get("schema", ""), asked.get("table", "")
    failed = f"{schema}.{name} was not rewound"
    if request.method == "GET":
        row = get_object_or_404(
            Table.objects.shown(), replicator=found, schema_name=schema, name=name
        )
        context = {"section": "replicators", "replicator": found, "row": row}
        if not can_rewind(found):
            return _refused(request, found, failed, refusal(TableId(schema, name)))
        try:
            context["window"] = rewind_window(found)
        except (ReplicationError, InvalidConfig) as err:
            return _refused(request, found, failed, _reported(err))
        return render_page(
            request, "runners/table_rewind.html", "runners/partials/_table_rewind.html", context
        )
    at = parse_moment(asked.get("at", ""))
    if at is None:
        return _refused(
            request, found, failed, "Enter the time as year, month, day, hour and minute."
        )
    return answer(
        request,
        found,
        lambda: services.table_rewind(
            replicator=found, schema=schema, name=name, at=at, actor=person(request)
        ),
        f"{schema}.{name} will be rewound.",
        failed,
    )


table_retry = _table_action(services.table_retry, "{table} is tried again now.", "was not retried")
table_replay = _table_action(
    services.table_replay, "The quarantined rows of {table} will be replayed.", "was not replayed"
)


@may_edit
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask for confirmation and name what is removed; then delete. Data in the target is removed
    only where the person says so explicitly. The replicator's own page shows the progress."""
    found = get_object_or_404(Replicator, pk=pk)
    if request.method == "POST":
        keep = request.POST.get("keep_target") != "false"
        services.replicator_delete(replicator=found, actor=person(request), keep_target=keep)
        return go(request, found, f"{found.name} is being deleted.")
    context = {"section": "replicators", "replicator": found, "objects": what_goes(found)}
    context["stake"] = replicator_stake(found)
    return render_page(
        request, "runners/replicator_delete.html", "runners/partials/_delete.html", context
    )


@may_edit
@require_POST
def table_add(request: HttpRequest, pk: str) -> HttpResponse:
    """Copy a table too. Where the assessment finds errors, the first one is the reason of the
    refusal."""
    found = get_object_or_404(Replicator, pk=pk)
    table = TableId(request.POST.get("schema", ""), request.POST.get("table", ""))
    if table not in {
        TableId(t.schema_name, t.name) for t in discovery.tables_asked(found)
    }:  # a person typed the name
        table = TableId(table.schema.strip(), table.name.strip())

    def act() -> Table:
        try:
            return changes.table_add(
                replicator=found, selection=TableSelection(table), actor=person(request)
            )
        except changes.TableRefused as err:
            first = next(p for p in err.problems if p.severity is Severity.ERROR).message
            text = f"{first.text} {first.suggestion}"
            raise IllegalTransition("refused", "table_add_asked", message=text) from err

    done = f"{table} will be copied, then followed."
    return answer(request, found, act, done, f"{table} was not added")
