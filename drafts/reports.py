"""Keeps a draft's last assessment, and combines it with later decisions about its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from assessments.report import Report, Support
from drafts.choice import Key, by_key
from drafts.digests import assessed_digest
from drafts.models import Draft, StoredReport
from replicators.connectors.model.modes import Mode
from replicators.connectors.problems.problem import ProblemJson

ERROR = "ERROR"
REPORTED_BY_LINE = frozenset(
    {
        "source:column-unsupported", "source:column-partial", "target:column-unsupported",
        "target:column-lossy",
    }
)  # fmt: skip
"""Problems that a column's line shows completely: its buttons are the possible actions."""


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column of the report. `decision` is `excluded`, `accepted` or empty. `problem` is the
    report's problem with it."""

    name: str
    native: str
    target_type: str
    support: str
    reason: str
    is_key: bool
    decision: str
    problem: ProblemJson | None = None

    @property
    def is_error(self) -> bool:
        """Whether the column prevents a deploy."""
        return self.problem is not None and self.problem["severity"] == ERROR

    @property
    def is_open(self) -> bool:
        """Whether somebody must still accept or exclude the column."""
        return self.support != Support.YES and not self.decision


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table of the report with its columns, the least supported first, and the problems that name
    it. `added` holds name and type of the columns that its mode adds."""

    schema: str
    name: str
    has_key: bool
    columns: list[ColumnLine]
    problems: list[ProblemJson]
    mode: str = Mode.MIRROR
    added: tuple[tuple[str, str], ...] = ()

    def count(self, support: str) -> int:
        """The number of columns with this support that are still copied."""
        return sum(c.support == support and c.decision != "excluded" for c in self.columns)

    @property
    def partial(self) -> int:
        return self.count(Support.PARTIAL)

    @property
    def unsupported(self) -> int:
        return self.count(Support.NO)

    @property
    def undecided(self) -> int:
        """The number of columns that lose something or are lost, and that nobody has decided
        about."""
        return sum(c.is_open for c in self.columns)

    @property
    def has_errors(self) -> bool:
        return any(p["severity"] == ERROR for p in self.problems)

    @property
    def reported(self) -> list[ProblemJson]:
        """The problems that no column's line shows."""
        lines = {c.name for c in self.columns if c.support != Support.YES}
        return [
            p
            for p in self.problems
            if p["column"] not in lines or p["code"] not in REPORTED_BY_LINE
        ]

    @property
    def is_clean(self) -> bool:
        return not self.problems and all(c.support == Support.YES for c in self.columns)


@dataclass(frozen=True, slots=True)
class ReportView:
    """A stored report as pages show it. `general` holds the problems that belong to none of its
    tables."""

    assessed_at: datetime
    is_stale: bool
    tables: list[TableLine]
    general: list[ProblemJson]
    explicit: frozenset[Key] = field(default_factory=frozenset)

    @property
    def errors(self) -> int:
        """The number of problems that forbid a deploy."""
        problems = [*self.general, *(p for t in self.tables for p in t.problems)]
        return sum(p["severity"] == ERROR for p in problems)

    @property
    def has_errors(self) -> bool:
        return self.errors > 0

    @property
    def undecided(self) -> int:
        return sum(t.undecided for t in self.tables)

    def table(self, key: Key) -> TableLine | None:
        """The line of a table."""
        return next((t for t in self.tables if (t.schema, t.name) == key), None)


def report_store(draft: Draft, report: Report) -> None:
    """Store the report as the draft's last one."""
    explicit = [[t["schema"], t["name"]] for t in draft.tables if t.get("columns")]
    StoredReport.objects.update_or_create(
        draft=draft,
        defaults={
            "digest": assessed_digest(draft),
            "report": report.to_json(),
            "errors": len(report.errors),
            "explicit": explicit,
            "doubtful": [
                [t.schema, t.name, c.name]
                for t in report.tables
                for c in t.columns
                if c.support is not Support.YES
            ],
            "assessed_at": report.assessed_at,
        },
    )


def is_passed(draft: Draft) -> bool:
    """Whether the draft was assessed as it is, without errors, and somebody accepted every column
    that loses something. This costs less than the report. Excluding a column changes the draft, so
    it is assessed again without that column."""
    fields = ("digest", "errors", "doubtful")
    last = StoredReport.objects.filter(draft=draft).values_list(*fields).first()
    if last is None or last[:2] != (assessed_digest(draft), 0):
        return False
    accepted = {tuple(a) for a in draft.accepted}
    return all(tuple(column) in accepted for column in last[2])


def report_of(draft: Draft) -> ReportView | None:
    """The draft's last report; None if it was never assessed."""
    stored = StoredReport.objects.filter(draft=draft).first()
    if stored is None:
        return None
    accepted = {tuple(a) for a in draft.accepted}
    chosen = by_key(draft.tables)
    problems = _by_table(stored.report["problems"])
    tables = []
    for raw in stored.report["tables"]:
        key = (raw["schema"], raw["name"])
        mine = problems.pop(key, [])
        if key in chosen:
            tables.append(_table(raw, chosen[key], accepted, mine))
    general = [p for key, found in problems.items() if key is None or key in chosen for p in found]
    return ReportView(
        assessed_at=stored.assessed_at,
        is_stale=stored.digest != assessed_digest(draft),
        tables=sorted(tables, key=_worst_first),
        general=general,
        explicit=frozenset((s, n) for s, n in stored.explicit),
    )


def _by_table(problems: Iterable[ProblemJson]) -> dict[Key | None, list[ProblemJson]]:
    found: dict[Key | None, list[ProblemJson]] = {}
    for problem in problems:
        key: Key | None = None
        if problem["schema"] is not None and problem["table"]:
            key = (problem["schema"], problem["table"])
        found.setdefault(key, []).append(problem)
    return found


def _table(
    raw: Mapping[str, Any],
    choice: Mapping[str, Any],
    accepted: set[tuple[Any, ...]],
    problems: list[ProblemJson],
) -> TableLine:
    kept = set(choice.get("columns") or ())
    by_column = {p["column"]: p for p in reversed(problems)}
    columns = []
    for c in raw["columns"]:
        is_key = bool(c.get("is_key"))
        decision = "accepted" if (raw["schema"], raw["name"], c["name"]) in accepted else ""
        if kept and c["name"] not in kept and not is_key:
            decision = "excluded"
        columns.append(
            ColumnLine(
                c["name"],
                c["native"],
                c["target_type"],
                c["support"],
                c["reason"],
                is_key,
                decision,
                by_column.get(c["name"]),
            )
        )
    gone = {c.name for c in columns if c.decision == "excluded"}
    still = [p for p in problems if p["column"] not in gone]
    order = [Support.NO, Support.PARTIAL, Support.YES]
    columns.sort(key=lambda c: order.index(Support(c.support)))
    added = tuple((c["name"], c["target_type"]) for c in raw.get("added", ()))
    mode = raw.get("mode") or Mode.MIRROR
    return TableLine(raw["schema"], raw["name"], bool(raw["has_key"]), columns, still, mode, added)


def _worst_first(table: TableLine) -> tuple[Any, ...]:
    return (
        not table.has_errors,
        not table.undecided,
        table.is_clean,
        table.schema,
        table.name,
    )
