"""The wizard's last pages: the assessment, to decide about columns, and the summary, to deploy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse

from assessments.report import Support
from drafts import choice, services, steps, wizard
from drafts.models import Draft
from drafts.reports import ReportView, TableLine, report_of
from drafts.selectors import draft_shown
from drafts.statements.shown import has_secrets, statement_of
from drafts.wizard import Visit
from replicators.config import InvalidConfig, plugin_of, source_plugin, suggested_for
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetPlugin
from replicators.forms import option_fields, param_fields, picks_fitting
from replicators.pages import go
from replicators.people import person
from replicators.services import NameTaken, params_of

PAGE_TABLES = 25


@wizard.page("assessment")
def assessment(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Show what will not work and how to correct it."""
    if request.method == "POST":
        done = wizard.moved(visit)
        if done:
            return done
        if visit.act == "run":
            _run(visit)
        else:
            _decide(visit)
    report = report_of(visit.draft)
    asked = request.GET if request.method == "GET" else request.POST
    context = {
        "report": report,
        "is_wide": True,
        "missing": _missing(visit),
        "page": _page(report, asked.get("page", "1")),
        "needs_run": request.method == "GET" and (report is None or report.is_stale),
    }
    return wizard.show(visit, "drafts/partials/_assessment.html", context)


def _page(report: ReportView | None, number: str) -> Page[TableLine]:
    return Paginator(report.tables if report else [], PAGE_TABLES).get_page(number)


def _missing(visit: Visit) -> list[tuple[str, str]]:
    """The pages that must be filled in first."""
    return [(n, steps.title_of(n)) for n in steps.NAMES[:5] if steps.faults(visit.draft, n)]


def _run(visit: Visit) -> None:
    try:
        services.draft_assess(draft=visit.draft)
    except InvalidConfig as err:
        visit.status, visit.errors = 422, err.errors


def _decide(visit: Visit) -> None:
    """`accept`, `exclude`, `again` with a column; `drop` with a table; `accept-all`."""
    act, _, about = visit.act.partition(":")
    report = report_of(visit.draft)
    if report is None:
        return
    try:
        schema, name, *column = [str(part) for part in json.loads(about)] if about else ["", ""]
    except (ValueError, TypeError, RecursionError):
        return
    if act == "accept-all":
        wizard.save(visit, {"accepted": _accepted_all(visit, report)})
    elif act == "drop":
        kept = choice.dropped(visit.draft.tables, {(schema, name)})
        wizard.save(visit, {"tables": kept})
    elif column and act == "accept":
        accepted = [*visit.draft.accepted, [schema, name, column[0]]]
        wizard.save(visit, {"accepted": accepted})
    elif column:
        _choose_column(visit, report, (schema, name), column[0])


def _accepted_all(visit: Visit, report: ReportView) -> list[list[str]]:
    found = [[t.schema, t.name, c.name] for t in report.tables for c in t.columns if c.is_open]
    return [*visit.draft.accepted, *found]


def _choose_column(visit: Visit, report: ReportView, key: choice.Key, column: str) -> None:
    line = report.table(key)
    if line is None:
        return
    known = [c.name for c in line.columns]
    if visit.act.startswith("exclude:"):
        tables = choice.without_columns(visit.draft.tables, key, {column}, known)
    else:
        is_explicit = key in report.explicit
        tables = choice.with_column_again(
            visit.draft.tables, key, column, known, is_explicit=is_explicit
        )
    accepted = [a for a in visit.draft.accepted if tuple(a) != (*key, column)]
    wizard.save(visit, {"tables": tables, "accepted": accepted})


@wizard.page("summary")
def summary(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Show the whole draft. *Deploy* makes the replicator and starts it."""
    if request.method == "POST":
        done = _deploy(visit) if visit.act == "deploy" else wizard.moved(visit)
        if done:
            return done
    return wizard.show(visit, "drafts/partials/_summary.html", _summary(visit))


def _deploy(visit: Visit) -> HttpResponse | None:
    if wizard.version_of(visit.request.POST) != visit.draft.version:
        visit.status, visit.conflict = 409, visit.draft.version
        return None
    try:
        made = services.draft_deploy(
            draft=visit.draft, actor=person(visit.request), needs_decisions=True
        )
    except services.DeployRefused as err:
        count = sum(p.severity == "ERROR" for p in err.problems)
        text = f"Not deployed: fix {count} error{'s' if count > 1 else ''} first."
        return wizard.refused(visit, text, "assessment")
    except services.Undecided as undecided:
        text = f"Not deployed: accept or exclude {undecided.count} column"
        return wizard.refused(
            visit, f"{text}{'s' if undecided.count > 1 else ''} first.", "assessment"
        )
    except (InvalidConfig, NameTaken) as err:
        visit.status, visit.errors = 422, err.errors
        return None
    except services.StaleDraft as err:
        visit.status, visit.conflict = 409, err.version
        return None
    return go(visit.request, made, f"{made.name} is deployed, and starts.")


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """A reason why a draft can't be deployed, and the page that settles it."""

    step: str
    title: str
    text: str


def _open_points(report: ReportView | None, faults: Mapping[str, list[str]]) -> list[OpenPoint]:
    """The known open points. For a draft that was never assessed, more may appear at the deploy,
    which assesses first."""
    titles = {name: steps.title_of(name) for name in steps.NAMES}
    found = [
        OpenPoint(name, titles[name], "Something is missing or wrong.")
        for name, texts in faults.items()
        if texts
    ]
    if report is None or found:
        return found
    open_here = [f"fix {_many(report.errors, 'error')}"] if report.has_errors else []
    if report.undecided:
        open_here.append(f"accept or exclude {_many(report.undecided, 'column')}")
    if open_here:
        text = f"{' and '.join(open_here).capitalize()}."
        found.append(OpenPoint("assessment", titles["assessment"], text))
    return found


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def _summary(visit: Visit) -> dict[str, Any]:
    draft = visit.draft
    report = report_of(draft)
    faults = {name: list(steps.faults(draft, name).values()) for name in steps.NAMES[:5]}
    defaults = suggested_for(draft.target_kind, params_of(draft, "target"))
    statement = statement_of(draft)
    return {
        "statement": statement,
        "has_secrets": has_secrets(statement),
        "open_points": _open_points(report, faults),
        "roles": [_role(draft, role) for role in ("source", "target")],
        "options": picks_fitting(option_fields(draft.options, {}, defaults), draft.target_kind),
        "report": report,
        "partial": sum(t.partial for t in report.tables) if report else 0,
        "faults": faults,
        "Support": Support,
        "makes": _made_at_source(draft.source_kind),
    }


def _made_at_source(kind: str) -> str:
    """What a replicator makes at a source of that kind, such as `1 replication slot and 2
    publications`; empty if nothing."""
    try:
        counts = Counter(what for what, _ in source_plugin(kind).objects(""))
    except ReplicationError:
        return ""
    return " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items())


def _role(draft: Draft, role: str) -> dict[str, Any]:
    kind = getattr(draft, f"{role}_kind")
    values = draft_shown(draft)[f"{role}_params"]
    try:
        plugin = plugin_of(role, kind)
    except ReplicationError:
        return {"name": role, "title": role.capitalize(), "label": "", "fields": []}
    fields = [f for f in param_fields(role, kind, values, {}) if f.value not in ("", None)]
    delivery = plugin.capabilities.delivery if isinstance(plugin, TargetPlugin) else None
    return {
        "name": role,
        "title": role.capitalize(),
        "label": plugin.label,
        "fields": fields,
        "delivery": delivery,
    }
