"""Live pages of running replicators: the list, and one replicator's overview and tables. They read
only; `runners.pages.actions` changes."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from replicators.models import Replicator
from replicators.pages import is_partial, may_view, render_page
from runners import selectors
from runners.pages import panels
from runners.supervision.health import worker_health


class OverviewPage(panels.OverviewContext, panels.ChartsContext):
    """The whole page of the overview."""


def _unchanged(request: HttpRequest, context: panels.Versioned) -> bool:
    return is_partial(request) and request.GET.get("version") == context["version"]


@may_view
@require_GET
def replicators(request: HttpRequest) -> HttpResponse:
    """The list of all replicators."""
    context = panels.list_context(request, request.GET)
    if _unchanged(request, context):
        return HttpResponse(status=204)
    return render_page(
        request, "runners/replicators.html", "runners/partials/_replicators.html", context
    )


def _live(request: HttpRequest, page: str, context: panels.HeadContext) -> HttpResponse:
    """The page. HTMX gets the body panel, and the head to put in its place; 204 where nothing has
    changed."""
    if _unchanged(request, context):
        return HttpResponse(status=204)
    if not is_partial(request):
        response = render(request, page, context)
    else:
        response = render(request, "runners/partials/_live.html", context)
    patch_vary_headers(response, ("HX-Request",))
    return response


@may_view
@require_GET
def replicator(request: HttpRequest, pk: str) -> HttpResponse:
    """One replicator's overview; of a deleted one, what is left to do."""
    found = Replicator.objects.filter(pk=pk).first()
    if found is None:
        return _gone(request, pk)
    context = panels.overview_context(request, found, request.GET)
    if is_partial(request):
        return _live(request, "runners/replicator.html", context)
    whole: OverviewPage = {**context, **panels.charts_context(found, request.GET)}
    return _live(request, "runners/replicator.html", whole)


def _gone(request: HttpRequest, pk: str) -> HttpResponse:
    """How the deletion of a replicator ended."""
    event = selectors.deletion(pk)
    if is_partial(request):
        return panels.gone(request, pk)
    if event is None:
        raise Http404
    context = {
        "section": "replicators",
        "event": event,
        "statements": event.facts.get("statements"),
        "target": selectors.target_after(event),
    }
    return render(request, "runners/replicator_deleted.html", context)


@panels.page
def tables(request: HttpRequest, found: Replicator) -> HttpResponse:
    """Its tables."""
    context = panels.tables_context(request, found, request.GET)
    return _live(request, "runners/replicator_tables.html", context)


@panels.page
def head(request: HttpRequest, found: Replicator) -> HttpResponse:
    """Name, state and actions alone, for pages whose body does not refresh itself."""
    context = panels.head_context(request, found, request.GET.get("tab", ""))
    if _unchanged(request, context):
        return HttpResponse(status=204)
    return render(request, "runners/partials/_head.html", context)


@panels.page
def charts(request: HttpRequest, found: Replicator) -> HttpResponse:
    """The charts panel."""
    context = {"replicator": found, **panels.charts_context(found, request.GET)}
    return render(request, "runners/partials/_charts.html", context)


@require_GET
def banner(request: HttpRequest) -> HttpResponse:
    """Whether workers and scheduler are alive, for the banner at the top of each page."""
    health = worker_health()
    if request.GET.get("said", "") == panels.version_of(health.message):
        return HttpResponse(status=204)
    return render(request, "runners/partials/_banner.html")
