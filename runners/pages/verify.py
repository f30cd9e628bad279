"""The page of a replicator's verifications: start, progress, results, differing rows, repairs, the
schedule. Each action calls one service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods, require_POST

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.problem import Severity
from replicators.invalid import InvalidConfig
from replicators.models import Replicator
from replicators.pages import is_partial, may_edit, render_page
from replicators.people import person
from replicators.permissions import can_edit
from runners.engine.verify.report import Outcome, Step
from runners.models import Table
from runners.pages import panels
from runners.pages.actions import answer
from runners.shown import ErrorShown, error_shown
from runners.states import COLOURS, LABELS
from runners.verifications import (
    DifferingRow,
    Repair,
    Verification,
    VerifiedTable,
    VerifySchedule,
)
from runners.verifying import selectors
from runners.verifying.ability import refusal_verify
from runners.verifying.outcomes import KINDS, STEPS, OutcomeShown, outcome_shown
from runners.verifying.rows import RowShown, row_shown
from runners.verifying.schedule import PRESETS, explained
from runners.verifying.selectors import VerificationView
from runners.verifying.services import (
    repair_ask,
    repairable,
    verification_cancel,
    verification_start,
    verify_schedule_set,
)

EARLIER = 10
REPAIRS = 10
LINES = 200
ROWS = 50


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table of a verification. `repairable`: listed rows that a repair may take."""

    row: VerifiedTable
    shown: OutcomeShown
    error: ErrorShown | None
    listed: int
    repairable: int

    @property
    def step(self) -> str:
        """What is done now, in words; empty where nothing is done."""
        return STEPS[Step(self.row.step)] if self.row.step else ""


@dataclass(frozen=True, slots=True)
class RepairLine:
    """A repair with the label and colour of its state."""

    row: Repair
    error: ErrorShown | None

    @property
    def label(self) -> str:
        """The state's label."""
        return LABELS[self.row.state]

    @property
    def colour(self) -> str:
        """The state's colour."""
        return COLOURS[self.row.state]


class VerifyContext(panels.HeadContext):
    """The page of verifications. `cant`: why it can't be verified. `of`: the result that the
    address names; the newest one is shown where it names none."""

    cant: str
    active: VerificationView | None
    active_lines: list[TableLine]
    chosen: VerificationView | None
    of: str
    lines: list[TableLine]
    earlier: list[VerificationView]
    repairs: list[RepairLine]
    schedule: VerifySchedule
    schedule_text: str
    body: str


def _lines(view: VerificationView | None) -> list[TableLine]:
    """The tables of a verification, those to look at first; at most `LINES`."""
    if view is None:
        return []
    found = list(view.row.tables.all())
    found.sort(key=lambda t: (-t.wrong, -t.unsettled, not t.error_code, not t.step, str(t)))
    found = found[:LINES]
    counts = selectors.rows_counted(found)
    lines = []
    for row in found:
        name = TableId(row.schema_name, row.name)
        error = error_shown(row.error_code, row.error_facts, None, table=name)
        if error is not None and row.outcome != Outcome.FAILED:
            error["severity"] = Severity.INFO
        listed, waits = counts.get(row.pk, (0, 0))
        shown = outcome_shown(row.outcome, row.wrong)
        lines.append(TableLine(row, shown, error, listed, waits))
    return lines


def _repairs(replicator: Replicator) -> list[RepairLine]:
    return [
        RepairLine(
            r,
            error_shown(
                r.error_code,
                r.error_facts,
                r.ended_at,
                TableId(r.table.schema_name, r.table.name),
            ),
        )
        for r in selectors.repairs_of(replicator)[:REPAIRS]
    ]


def verify_context(
    request: HttpRequest, replicator: Replicator, query: panels.Query
) -> VerifyContext:
    """What goes on, the chosen result (by default the newest), earlier ones and repairs."""
    context = panels.head_context(request, replicator, "verify")
    mine = selectors.verifications_of(replicator)
    active = selectors.verification_active(replicator)
    ended = mine.exclude(pk=active.row.pk) if active else mine
    earlier = selectors.verification_views(ended[:EARLIER])
    chosen = earlier[0] if earlier else None
    asked = next((v for v in earlier if str(v.row.pk) == query.get("of")), None)
    chosen = asked or chosen
    lines, active_lines, repairs = _lines(chosen), _lines(active), _repairs(replicator)
    schedule = selectors.schedule_of(replicator)
    shown = panels.version_of(
        context["version"],
        [(v.row.pk, v.row.state) for v in earlier],
        [(r.row.pk, r.row.state) for r in repairs],
        [(line.row.pk, line.repairable) for line in lines],
        active and (active.row.pk, active.row.state, active.row.is_cancel_asked),
        [(n.row.step, n.row.rows_read, n.row.outcome, n.row.wrong) for n in active_lines],
        (schedule.cron, schedule.rows_per_second, schedule.next_at),
    )
    return {
        **context,
        "cant": refusal_verify(replicator),
        "active": active,
        "active_lines": active_lines,
        "chosen": chosen,
        "of": str(asked.row.pk) if asked else "",
        "lines": lines,
        "earlier": earlier,
        "repairs": repairs,
        "schedule": schedule,
        "schedule_text": explained(schedule.cron),
        "body": "runners/partials/_verify.html",
        "version": shown,
    }


panels.LIVE["replicator-verify"] = verify_context


@panels.page
def verify(request: HttpRequest, found: Replicator) -> HttpResponseBase:
    """Its verifications. HTMX gets the body panel and the head; 204 where nothing has changed."""
    context = verify_context(request, found, request.GET)
    if is_partial(request) and request.GET.get("version") == context["version"]:
        return HttpResponse(status=204)
    template = "runners/partials/_live.html" if is_partial(request) else "runners/verify.html"
    response = render(request, template, context)
    patch_vary_headers(response, ("HX-Request",))
    return response


def _page_of(found: Replicator) -> str:
    return reverse("runners:replicator-verify", args=[found.pk])


def _number(text: str, name: str) -> int | None:
    """A whole number from a form; None where the field is empty. InvalidConfig for another text."""
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise InvalidConfig({name: "must be a whole number"})
    return int(text)


@may_edit
@require_http_methods(["GET", "POST"])
def verify_start(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask which tables to compare, and how fast; then start the verification."""
    found = get_object_or_404(Replicator, pk=pk)
    if request.method == "GET":
        context = {
            "section": "replicators",
            "replicator": found,
            "cant": refusal_verify(found),
            "tables": Table.objects.shown().filter(replicator=found).defer("schema"),
            "asked": [request.GET.get("schema", ""), request.GET.get("table", "")],
        }
        return render_page(
            request, "runners/verify_start.html", "runners/partials/_verify_start.html", context
        )
    return answer(
        request,
        found,
        lambda: verification_start(
            replicator=found,
            actor=person(request),
            names=_names(request.POST),
            rows_per_second=_number(request.POST.get("rows_per_second", ""), "rows_per_second"),
        ),
        "The verification starts.",
        f"{found.name} was not verified",
        to=_page_of(found),
    )


def _names(form: QueryDict) -> list[TableId] | None:
    """The tables that the form names by their rows' ids; None: all of them."""
    if form.get("which", "all") == "all":
        return None
    ids = [i for i in form.getlist("table") if i.isascii() and i.isdigit() and len(i) < 19]
    if not ids:
        raise InvalidConfig({"tables": "must name at least one table"})
    rows = Table.objects.filter(pk__in=ids).values_list("schema_name", "name")
    return [TableId(schema, name) for schema, name in rows]


@may_edit
@require_POST
def verify_cancel(request: HttpRequest, pk: str, verification: str) -> HttpResponse:
    """Cancel a verification."""
    found = get_object_or_404(Replicator, pk=pk)
    row = get_object_or_404(Verification, replicator=found, pk=verification)
    return answer(
        request,
        found,
        lambda: verification_cancel(verification=row, actor=person(request)),
        "The verification stops within some seconds.",
        "The verification was not cancelled",
        to="" if is_partial(request) else _page_of(found),
    )


@may_edit
@require_http_methods(["GET", "POST"])
def verify_schedule(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask when it verifies itself; then set the schedule."""
    found = get_object_or_404(Replicator, pk=pk)
    schedule = selectors.schedule_of(found)
    if request.method == "GET":
        context = {
            "section": "replicators",
            "replicator": found,
            "schedule": schedule,
            "presets": PRESETS,
            "is_own": schedule.cron not in dict(PRESETS),
        }
        return render_page(
            request,
            "runners/verify_schedule.html",
            "runners/partials/_verify_schedule.html",
            context,
        )
    form = request.POST
    chosen = form.get("every", "")
    cron = form.get("cron", "") if chosen == "own" else chosen
    return answer(
        request,
        found,
        lambda: verify_schedule_set(
            replicator=found,
            cron=_own(cron) if chosen == "own" else cron,
            rows_per_second=_number(form.get("rows_per_second", ""), "rows_per_second"),
            actor=person(request),
        ),
        "The schedule is set." if cron else "It is no longer verified by itself.",
        "The schedule was not set",
        to=_page_of(found),
    )


def _own(cron: str) -> str:
    """A schedule of one's own, which can't be empty."""
    if not cron.strip():
        raise InvalidConfig({"cron": "must be five fields of cron, such as 0 3 * * *"})
    return cron


@dataclass(frozen=True, slots=True)
class _Rows:
    verification: Verification
    table: VerifiedTable


def _verified(found: Replicator, verification: str, query: QueryDict) -> _Rows:
    row = get_object_or_404(Verification, replicator=found, pk=verification)
    table = get_object_or_404(
        VerifiedTable,
        verification=row,
        schema_name=query.get("schema", ""),
        name=query.get("table", ""),
    )
    return _Rows(row, table)


def _kinds(table: VerifiedTable) -> list[tuple[str, str, int]]:
    """The filters by kind: value, label, number."""
    counts = [(str(k), KINDS[k][0], int(getattr(table, str(k)))) for k in KINDS]
    counts.append(("unsettled", "Unsettled", table.unsettled))
    return [("", "All", table.wrong + table.unsettled), *(c for c in counts if c[2])]


def verify_rows(request: HttpRequest, pk: str, verification: str) -> HttpResponseBase:
    """The listed rows of a table that differ, each with both values."""

    def view(request: HttpRequest, found: Replicator) -> HttpResponse:
        of = _verified(found, verification, request.GET)
        kind = request.GET.get("kind", "")
        raw = request.GET.get("after", "")
        after = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 19 else 0
        rows = selectors.rows_page(of.table, kind=kind, after=after, limit=ROWS + 1)
        more = rows[ROWS - 1].pk if len(rows) > ROWS else None
        may_see = can_edit(request.user)
        shown: Sequence[RowShown] = [row_shown(r, may_see=may_see) for r in rows[:ROWS]]
        waits = len(repairable(of.table))
        name = TableId(of.table.schema_name, of.table.name)
        context = {
            **panels.head_context(request, found, "verify"),
            "verification": of.verification,
            "verified": of.table,
            "shown": outcome_shown(of.table.outcome, of.table.wrong),
            "error": error_shown(of.table.error_code, of.table.error_facts, None, table=name),
            "rows": shown,
            "kind": kind,
            "kinds": _kinds(of.table),
            "more": more,
            "repairable": waits,
            "listed": of.table.rows.count(),
            "is_masked": not may_see,
        }
        return render_page(
            request, "runners/verify_rows.html", "runners/partials/_verify_rows.html", context
        )

    return panels.page(view)(request, pk=pk)


@may_edit
@require_http_methods(["GET", "POST"])
def verify_repair(request: HttpRequest, pk: str, verification: str) -> HttpResponse:
    """Ask for confirmation with the number of rows; then ask the run for the repair. Without
    chosen rows, of every listed row that differs."""
    found = get_object_or_404(Replicator, pk=pk)
    form = request.GET if request.method == "GET" else request.POST
    of = _verified(found, verification, form)
    chosen = [int(i) for i in form.getlist("row") if i.isascii() and i.isdigit() and len(i) < 19]
    if request.method == "GET":
        waits = [r for r in repairable(of.table) if not chosen or r.pk in set(chosen)]
        context: dict[str, Any] = {
            "section": "replicators",
            "replicator": found,
            "verification": of.verification,
            "verified": of.table,
            "chosen": chosen,
            "count": len(waits),
            "kinds": _counted(waits),
            "unlisted": of.table.wrong - of.table.rows.filter(is_unsettled=False).count(),
        }
        return render_page(
            request, "runners/verify_repair.html", "runners/partials/_verify_repair.html", context
        )
    if form.get("choice") == "rows" and not chosen:
        raise Http404
    where = reverse("runners:verify-rows", args=[found.pk, of.verification.pk])
    query = QueryDict(mutable=True)
    query.update({"schema": of.table.schema_name, "table": of.table.name})
    return answer(
        request,
        found,
        lambda: repair_ask(
            verification=of.verification,
            schema=of.table.schema_name,
            name=of.table.name,
            rows=chosen or None,
            actor=person(request),
        ),
        f"The repair of {of.table} is requested: the run does it between two merges.",
        f"{of.table} was not repaired",
        to=f"{where}?{query.urlencode()}",
    )


def _counted(rows: Sequence[DifferingRow]) -> list[tuple[str, int]]:
    """How many of the rows are of each kind: sentences for the confirmation."""
    texts = {
        "missing": "written to the target, which has no such row",
        "different": "written again with the source's values",
        "extra": "deleted from the target; the source has no such row",
    }
    counts = [(texts[k], sum(r.kind == k for r in rows)) for k in texts]
    return [(text, n) for text, n in counts if n]
