"""The contents of the live panels: a page includes them, HTMX requests them alone. Views and
actions use the same builders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, TypedDict
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from replicators.config import source_plugin, target_can
from replicators.connectors.capabilities import SourceCapabilities, TargetCapabilities
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.message import Message
from replicators.models import Replicator
from replicators.pages import View, is_partial, may_view
from replicators.permissions import can_change, can_make, changeable
from runners import selectors
from runners.metrics import charts
from runners.metrics.copying import CopyProgress, copy_progress
from runners.metrics.spending import Spending, spending_of
from runners.metrics.status import FRESH_SECONDS
from runners.metrics.totals import SINCE
from runners.models import Delivery, NewTable, Table, Watermark
from runners.pages.listing import (
    GROUPS,
    LINE_SORTS,
    TABLE_SORTS,
    Asked,
    Line,
    Page,
    lines_listed,
    tables_listed,
)
from runners.shown import ReplicatorView, TableView
from runners.states import LABELS, TABLES_SHOWN, TableState
from runners.tables.conflicts import settles
from runners.tables.deliveries import deliveries_of, last_of_tables, refusal_of
from runners.tables.discovery import tables_asked
from runners.tables.together import Apart, tables_apart
from runners.tables.watermarks import watermark_last
from runners.verifying.selectors import (
    TableVerified,
    VerificationView,
    tables_verified,
    verification_failed,
    verification_last,
)

FAILING_SHOWN = 5
DELIVERIES_SHOWN = 20
Query = Mapping[str, str]


Chip = tuple[str, str, int]
"""A filter above a list: its value in the address, its label, and how many lines it has."""


class Versioned(TypedDict):
    """A panel that refreshes itself: `version` changes with what it shows."""

    version: str


class ListContext(Versioned):
    """The list of all replicators."""

    section: str
    page: Page[Line]
    asked: Asked
    chips: list[Chip]
    has_any: bool
    can_make: bool
    changeable: set[UUID]


class HeadContext(Versioned):
    """The top of each page of a replicator."""

    section: str
    tab: str
    new_tables: list[NewTable]
    view: ReplicatorView
    replicator: Replicator
    is_editor: bool
    is_paused: bool
    source_can: SourceCapabilities
    target_can: TargetCapabilities | None
    is_two_way: bool


class OverviewContext(HeadContext):
    """A replicator's overview."""

    failing: list[TableView]
    failing_more: int
    log: SourceLog
    rate: float | None
    worst: TableView | None
    hour: charts.Series
    consistent: Watermark | None
    apart: Apart | None
    copying: CopyProgress | None
    spending: Spending | None
    verified: VerificationView | None
    verify_failed: VerificationView | None
    deliveries: list[DeliveryLine]
    is_stale: bool
    body: str


class ChartsContext(TypedDict):
    """A replicator's charts."""

    series: charts.Series
    ranges: Collection[charts.Range]


class TablesContext(HeadContext):
    """A page of a replicator's tables."""

    page: Page[Table]
    asked: Asked
    chips: list[Chip]
    lines: list[TableLine]
    body: str


def version_of(*shown: Any) -> str:
    """A text that changes whenever one of the shown values changes."""
    return hashlib.sha256(json.dumps(shown, default=str).encode()).hexdigest()[:16]


# --- all replicators ---------------------------------------------------------------------------------------------  # noqa: E501
def list_context(request: HttpRequest, query: Query) -> ListContext:
    """The list of replicators that the address asks for."""
    views = selectors.replicators_for_list()
    recent = charts.recent([v.replicator.pk for v in views], timezone.now())
    lines = [Line(v, recent[v.replicator.pk]) for v in views]
    asked = Asked.of(query, sorts=list(LINE_SORTS), states=list(GROUPS))
    page = lines_listed(lines, asked)
    groups = [line.group for line in lines]
    chips = [("", "All", len(lines))]
    chips += [(k, v, groups.count(k)) for k, v in GROUPS.items() if k in groups or k == asked.state]
    shown = [
        [line.view.shown.label, line.view.replicator.name, line.view.counts,
        line.view.next_delivery_at,
        asdict(line.view.totals),
         asdict(line.recent), line.view.error]
        for line in page.rows
    ]  # fmt: skip
    return {
        "section": "replicators",
        "page": page,
        "asked": asked,
        "chips": chips,
        "has_any": bool(lines),
        "version": version_of(shown, chips),
        "can_make": can_make(request.user),
        "changeable": changeable(request.user, [line.view.replicator for line in page.rows]),
    }


# --- one replicator ----------------------------------------------------------------------------------------------  # noqa: E501
def head_context(request: HttpRequest, replicator: Replicator, tab: str) -> HeadContext:
    """Name, state, actions and tabs, at the top of each page of a replicator."""
    view = selectors.replicator_view(replicator)
    asked = tables_asked(replicator)
    return {
        "section": "replicators",
        "tab": tab,
        "new_tables": asked,
        "view": view,
        "replicator": view.replicator,
        "is_editor": can_change(request.user, replicator),
        "is_paused": view.is_paused,
        "source_can": source_can(replicator),
        "target_can": target_can(replicator.target_kind),
        "is_two_way": settles(replicator),
        "version": version_of(_head_shown(view), [str(t) for t in asked]),
    }


def _head_shown(view: ReplicatorView) -> list[Any]:
    return [view.shown.label, view.replicator.name, asdict(view.totals), view.error, view.tries]


def source_can(replicator: Replicator) -> SourceCapabilities:
    """The source's capabilities and words; the defaults of any source where the plugin is
    missing."""
    try:
        return source_plugin(replicator.source_kind).capabilities
    except ReplicationError:
        return SourceCapabilities()


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """A delivery in the list, and why it was refused."""

    row: Delivery
    refusal: Message | None


def delivery_lines(view: ReplicatorView) -> list[DeliveryLine]:
    """The last deliveries; none where the source has no deliveries."""
    if not view.has_deliveries:
        return []
    rows = deliveries_of(view.replicator)[:DELIVERIES_SHOWN]
    return [DeliveryLine(row, refusal_of(row)) for row in rows]


@dataclass(frozen=True, slots=True)
class SourceLog:
    """What the source reports of its log, and the state of our own change log. None: not known."""

    is_known: bool
    is_active: bool
    retained_bytes: int | None
    hours_left: float | None
    is_limited: bool
    bytes_per_second: float | None
    said_at: datetime | None
    is_stale: bool
    log_bytes: int | None
    limit_bytes: int | None
    segments_waiting: int | None
    is_backpressure: bool
    is_source_closed: bool


def source_log(view: ReplicatorView, now: datetime) -> SourceLog:
    """The last metrics of a run. While no run is live, nobody reads the slot."""
    facts = view.facts
    said = facts.get("source_at")
    said_at = datetime.fromtimestamp(said, UTC) if said else None
    age = timedelta(seconds=2 * FRESH_SECONDS)
    return SourceLog(
        is_known=said_at is not None,
        is_active=bool(facts.get("is_slot_active")) and view.is_live,
        retained_bytes=facts.get("retained_bytes"),
        hours_left=facts.get("hours_left"),
        is_limited=bool(facts.get("is_log_limited")),
        bytes_per_second=facts.get("source_bytes_per_second"),
        said_at=said_at,
        is_stale=view.is_live and (said_at is None or now - said_at > age),
        log_bytes=facts.get("log_bytes"),
        limit_bytes=facts.get("log_limit_bytes"),
        segments_waiting=facts.get("segments_waiting"),
        is_backpressure=view.is_log_full,
        is_source_closed=view.is_source_closed,
    )


def _worst(view: ReplicatorView) -> TableView | None:
    """The table that determines the replicator's lag: the one with the greatest measured lag, or
    the one that has stood still longest."""
    tables = selectors.tables_shown(view.replicator).filter(is_snapshot_done=True)
    first = tables.filter(lag_seconds__isnull=False).order_by("-lag_seconds").first()
    oldest = tables.annotate(since=SINCE).filter(since__isnull=False).order_by("since").first()
    found = selectors.table_views(view, {t.pk: t for t in (first, oldest) if t}.values())
    return max(found, key=lambda t: t.lag_seconds or 0.0, default=None)


def overview_context(request: HttpRequest, replicator: Replicator, query: Query) -> OverviewContext:
    """State, lag, rates, failing tables, and both logs."""
    now = timezone.now()
    context = head_context(request, replicator, "overview")
    view = context["view"]
    failing = selectors.tables_shown(replicator).filter(state=TableState.FAILING)
    lines = selectors.table_views(view, failing[:FAILING_SHOWN])
    log = source_log(view, now)
    recent = charts.recent([replicator.pk], now)[replicator.pk]
    worst = _worst(view) if view.lag_seconds else None
    hour = charts.series(replicator, charts.RANGES["1h"], now)
    copying = copy_progress(view, now)
    consistent, apart = watermark_last(replicator), tables_apart(replicator)
    spending = spending_of(replicator)
    verified, failed = verification_last(replicator), verification_failed(replicator)
    deliveries = delivery_lines(view)
    version = version_of(
        verified and verified.row.pk, failed and failed.row.pk,
        [(d.row.pk, d.row.error_code) for d in deliveries], view.next_delivery_at,
        _head_shown(view), view.waits_for, asdict(log), recent.rate, [t.to_json() for t in lines],
        worst and str(worst.row), hour.lag_p50, hour.lag_p99, consistent and consistent.pk,
        apart and asdict(apart), copying and copying.to_json(), spending and asdict(spending.use),
    )  # fmt: skip
    return {
        **context,
        "failing": lines,
        "failing_more": view.totals.failing - len(lines),
        "log": log,
        "rate": recent.rate,
        "worst": worst,
        "hour": hour,
        "consistent": consistent,
        "apart": apart,
        "copying": copying,
        "spending": spending,
        "verified": verified,
        "verify_failed": failed,
        "deliveries": deliveries,
        "is_stale": view.is_live and _is_old(view.facts_at, now),
        "body": "runners/partials/_overview.html",
        "version": version,
    }


def _is_old(at: datetime | None, now: datetime) -> bool:
    return at is None or (now - at).total_seconds() > FRESH_SECONDS


def charts_context(replicator: Replicator, query: Query) -> ChartsContext:
    """Throughput and lag over the chosen range."""
    chosen = charts.RANGES.get(query.get("range", ""), charts.RANGES["1h"])
    return {
        "series": charts.series(replicator, chosen, timezone.now()),
        "ranges": charts.RANGES.values(),
    }


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table in the list, with the rate of its copy. `slower`: why it is merged less often than
    people asked for. `verified`: when it was compared last, and with which outcome. `delivery`: its
    last one."""

    view: TableView
    rate: float | None
    eta_seconds: float | None
    slower: str = ""
    verified: TableVerified | None = None
    delivery: Delivery | None = None

    @property
    def row(self) -> Table:
        """Its row."""
        return self.view.row


def _table_line(
    view: TableView,
    rate: float | None,
    slower: str,
    verified: TableVerified | None,
    delivery: Delivery | None,
) -> TableLine:
    left = (view.row.rows_total or 0) - view.row.rows_snapshotted
    eta = left / rate if rate and left > 0 else None
    return TableLine(view, rate, eta, slower, verified, delivery)


def tables_context(request: HttpRequest, replicator: Replicator, query: Query) -> TablesContext:
    """The page of tables that the address asks for."""
    now = timezone.now()
    context = head_context(request, replicator, "tables")
    view = context["view"]
    asked = Asked.of(query, sorts=list(TABLE_SORTS), states=TABLES_SHOWN)
    page = tables_listed(selectors.tables_found(view, state=asked.state), asked)
    rows = list(page.rows)
    copying = [r for r in rows if r.state == TableState.SNAPSHOTTING and view.is_live]
    rates = charts.snapshot_rates(copying, now) if copying else {}
    spending = spending_of(replicator)
    compared = tables_verified(replicator, rows)
    delivered = last_of_tables(replicator) if view.has_deliveries else {}
    lines = [
        _table_line(
            v,
            rates.get(v.row.pk),
            spending.why_slower(v.row) if spending else "",
            compared.get(TableId(v.row.schema_name, v.row.name)),
            delivered.get((v.row.schema_name, v.row.name)),
        )
        for v in selectors.table_views(view, rows)
    ]
    counts = view.counts
    chips = [("", "All", view.totals.tables)]
    chips += [(k, LABELS[k],
        counts.get(k, 0)) for k in TABLES_SHOWN if k in counts or k == asked.state]  # fmt: skip
    shown = [
        [
            t.view.asked_json(),
            t.row.rows_total,
            t.rate,
            t.slower,
            t.verified and t.verified.at,
            t.delivery and (t.delivery.pk, t.delivery.error_code),
        ]
        for t in lines
    ]
    return {
        **context,
        "page": page,
        "asked": asked,
        "chips": chips,
        "lines": lines,
        "body": "runners/partials/_tables.html",
        "version": version_of(_head_shown(view), shown),
    }


def gone(request: HttpRequest, pk: Any) -> HttpResponse:
    """The answer of every page of a replicator that does not exist: a redirect to the page that
    says how its deletion ended, else 404. An open page that refreshes itself also goes to that page
    where something is left to do, otherwise to the list; it does not matter which of its panels
    asks first."""
    event = selectors.deletion(pk)
    what_became = reverse("runners:replicator", args=[pk])
    if not is_partial(request):
        if event is None:
            raise Http404
        return HttpResponseRedirect(what_became)
    response = HttpResponse(status=200)
    is_left = event is not None and bool(event.facts.get("statements"))
    response["HX-Redirect"] = what_became if is_left else reverse("runners:replicators")
    if event is not None and not is_left:
        messages.success(request, f"{event.facts.get('name', 'It')} is deleted.")
    return response


def page(view: Callable[[HttpRequest, Replicator], HttpResponseBase]) -> View:
    """A page of one replicator: by GET, for people who may view. The view gets the replicator; a
    missing one is answered by `gone`."""

    @may_view
    @require_GET
    @wraps(view)
    def shown(request: HttpRequest, pk: Any) -> HttpResponseBase:
        found = Replicator.objects.filter(pk=pk).first()
        return gone(request, pk) if found is None else view(request, found)

    return shown


# --- after an action ---------------------------------------------------------------------------------------------  # noqa: E501
def _tab_of(name: str) -> str:
    """The tab of a page by the name of its route: `verify-rows` belongs to `verify`."""
    return name.removeprefix("replicator-").partition("-")[0]


LIVE: dict[str, Callable[[HttpRequest, Replicator, Query], HeadContext]] = {
    "replicator": overview_context,
    "replicator-tables": tables_context,
}


def _where(request: HttpRequest) -> tuple[str, QueryDict]:
    """The page that sent the HTMX request: the name and the query of its address."""
    url = urlsplit(request.htmx.current_url_abs_path or "/")  # type: ignore[attr-defined]
    try:
        name = resolve(url.path).url_name or ""
    except (Resolver404, Http404):
        name = ""
    return name, QueryDict(url.query)


def refreshed(
    request: HttpRequest,
    replicator: Replicator,
    *,
    refused: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Every live panel of the page that an action came from; HTMX puts each in its own place."""
    name, query = _where(request)
    if name == "replicators":
        listed = {**list_context(request, query), "is_oob": True, "refused": refused}
        return render(request, "runners/partials/_replicators.html", listed, status=status)
    if build := LIVE.get(name):
        context = build(request, replicator, query)
    else:
        context = head_context(request, replicator, _tab_of(name))
    shown = {**context, "is_oob": True, "is_action": True, "refused": refused}
    return render(request, "runners/partials/_live.html", shown, status=status)
