"""The page of a replicator's subscribers: who reads, how far each one is, and the last changes as
they come. Each action calls one service."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods

from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.pages import is_partial, may_edit, render_page
from replicators.people import person
from replicators.permissions import can_read_rows
from runners.models import Table
from runners.pages import panels
from runners.pages.actions import answer
from runners.subscribers import Subscriber
from runners.subscribing.lag import SubscriberShown, subscribers_of
from runners.subscribing.ranges import parse_ranges
from runners.subscribing.recent import ChangeShown, recent_changes
from runners.subscribing.services import (
    refusal_subscribe,
    subscriber_register,
    subscriber_remove,
)


class SubscribersContext(panels.HeadContext):
    """The page of subscribers. `cant`: why nobody can subscribe."""

    cant: str
    subscribers: list[SubscriberShown]
    changes: list[ChangeShown]
    is_masked: bool
    address: str
    body: str


def subscribers_context(
    request: HttpRequest, replicator: Replicator, query: panels.Query
) -> SubscribersContext:
    """The subscribers and the last changes."""
    context = panels.head_context(request, replicator, "subscribers")
    cant = refusal_subscribe(replicator)
    may_see = can_read_rows(request.user, request.resolver_match)
    shown = [] if cant else subscribers_of(replicator, timezone.now())
    changes = [] if cant else recent_changes(replicator, may_see=may_see)
    version = panels.version_of(
        context["version"],
        [(s.row.name, s.row.seen_at, s.changes_behind, len(s.stopped)) for s in shown],
        [(c.table, c.sequence) for c in changes],
        [round(s.seconds_behind) for s in shown],
    )
    return {
        **context,
        "cant": cant,
        "subscribers": shown,
        "changes": changes,
        "is_masked": not may_see,
        "address": reverse("api:subscribers", args=[replicator.pk]),
        "body": "runners/partials/_subscribers.html",
        "version": version,
    }


panels.LIVE["replicator-subscribers"] = subscribers_context


@panels.page
def subscribers(request: HttpRequest, found: Replicator) -> HttpResponseBase:
    """Its subscribers. HTMX gets the body panel and the head; 204 where nothing has changed."""
    context = subscribers_context(request, found, request.GET)
    if is_partial(request) and request.GET.get("version") == context["version"]:
        return HttpResponse(status=204)
    template = "runners/partials/_live.html" if is_partial(request) else "runners/subscribers.html"
    response = render(request, template, context)
    patch_vary_headers(response, ("HX-Request",))
    return response


def _page_of(found: Replicator) -> str:
    return reverse("runners:replicator-subscribers", args=[found.pk])


@may_edit
@require_http_methods(["GET", "POST"])
def register(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask for a name and the tables; then register the subscriber."""
    found = get_object_or_404(Replicator, pk=pk)
    if request.method == "GET":
        context: dict[str, Any] = {
            "section": "replicators",
            "replicator": found,
            "cant": refusal_subscribe(found),
            "tables": Table.objects.shown().filter(replicator=found).defer("schema"),
        }
        return render_page(
            request,
            "runners/subscriber_register.html",
            "runners/partials/_subscriber_register.html",
            context,
        )
    name = request.POST.get("name", "").strip()

    def act() -> None:
        tables = _chosen(request, found)
        subscriber_register(replicator=found, name=name, actor=person(request), tables=tables)

    done, failed = f"{name} is registered.", "The subscriber was not registered"
    return answer(request, found, act, done, failed, to=_page_of(found))


def _chosen(request: HttpRequest, found: Replicator) -> list[dict[str, Any]]:
    """The tables that the form names by their rows' ids; none: all of them."""
    form = request.POST
    if form.get("which", "all") == "all":
        return []
    ids = [i for i in form.getlist("table") if i.isascii() and i.isdigit() and len(i) < 19]
    if not ids:
        raise InvalidConfig({"tables": "must name at least one table"})
    rows = Table.objects.filter(replicator=found, pk__in=ids)
    return [
        {
            "schema": schema,
            "name": table,
            "ranges": _ranges(f"{schema}.{table}", form.get(f"ranges-{pk}", "")),
        }
        for pk, schema, table in rows.values_list("pk", "schema_name", "name")
    ]


def _ranges(table: str, text: str) -> list[list[str | None]]:
    try:
        return parse_ranges(text)
    except ValueError as err:
        raise InvalidConfig({"tables": f"can't have these ranges of {table}: {err}"}) from err


@may_edit
@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, pk: str, subscriber: str) -> HttpResponse:
    """Ask for confirmation; then remove the subscriber."""
    found = get_object_or_404(Replicator, pk=pk)
    row = get_object_or_404(Subscriber, replicator=found, pk=subscriber)
    if request.method == "GET":
        context = {"section": "replicators", "replicator": found, "subscriber": row}
        return render_page(
            request,
            "runners/subscriber_remove.html",
            "runners/partials/_subscriber_remove.html",
            context,
        )
    return answer(
        request,
        found,
        lambda: subscriber_remove(subscriber=row, actor=person(request)),
        f"{row.name} is removed.",
        f"{row.name} was not removed",
        to=_page_of(found),
    )
