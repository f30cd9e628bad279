"""The report on what will be copied, and how well. It reads the plugins' types and adds no rules.
No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from replicators.connectors.model.modes import MESSAGE_COLUMNS, Mode, extra_columns
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Unsupported, type_to_json
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.target import Fit, FitKind

FitOf = Callable[[Column], Fit]


class Support(StrEnum):
    """Whether a column is copied whole, copied with a loss, or not copied."""

    YES = "YES"
    PARTIAL = "PARTIAL"
    NO = "NO"


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """How a column is copied. `neutral` is the JSON form of its neutral type. A key column can't be
    left out."""

    name: str
    native: str
    neutral: dict[str, Any]
    target_type: str
    support: Support
    reason: str = ""
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table and its `mode`. `partial` and `unsupported` count its columns; `added` lists the
    columns that the mode adds."""

    schema: str
    name: str
    columns: tuple[ColumnReport, ...]
    has_key: bool = True
    mode: str = Mode.MIRROR
    added: tuple[ColumnReport, ...] = ()

    @property
    def columns_total(self) -> int:
        return len(self.columns)

    @property
    def partial(self) -> int:
        return sum(c.support is Support.PARTIAL for c in self.columns)

    @property
    def unsupported(self) -> int:
        return sum(c.support is Support.NO for c in self.columns)

    def to_json(self) -> dict[str, Any]:
        """The form of REST."""
        return {
            "schema": self.schema,
            "table": self.name,
            "name": self.name,
            "has_key": self.has_key,
            "columns_total": self.columns_total,
            "partial": self.partial,
            "unsupported": self.unsupported,
            "columns": [{**asdict(c), "support": str(c.support)} for c in self.columns],
            "mode": str(self.mode),
            "added": [{**asdict(c), "support": str(c.support)} for c in self.added],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an assessment. Errors forbid a deploy."""

    tables: tuple[TableReport, ...]
    problems: tuple[Problem, ...]
    assessed_at: datetime

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity is Severity.ERROR)

    @property
    def has_errors(self) -> bool:
        return bool(self.errors)

    def to_json(self) -> dict[str, Any]:
        """The form of REST."""
        return {
            "assessed_at": self.assessed_at.isoformat(),
            "has_errors": self.has_errors,
            "tables": [t.to_json() for t in self.tables],
            "problems": [p.to_json() for p in self.problems],
        }


def _fit_of(column: Column, fit: FitOf) -> Fit:
    if isinstance(column.type, Unsupported):
        return Fit(FitKind.UNSUPPORTED, "", f"type {column.native} cannot be read")
    return fit(column)


_SUPPORT = {
    FitKind.EXACT: Support.YES,
    FitKind.WIDENED: Support.YES,
    FitKind.LOSSY: Support.PARTIAL,
    FitKind.UNSUPPORTED: Support.NO,
}


def column_report(
    column: Column, fit: FitOf, said: dict[str, Problem], *, is_key: bool = False
) -> ColumnReport:
    """The report on a column. `said` holds the problems of this column by code."""
    found = _fit_of(column, fit)
    support, reason = _SUPPORT[found.kind], found.reason
    partial = said.get("source:column-partial")
    if partial is not None and support is Support.YES:
        support, reason = Support.PARTIAL, dict(partial.facts).get("reason", partial.message.text)
    return ColumnReport(
        column.name, column.native, type_to_json(column.type), found.native, support, reason, is_key
    )


def _in_messages(fit: FitOf) -> FitOf:
    """How values fit into the JSON of messages."""

    def found(column: Column) -> Fit:
        own = fit(column)
        return own if own.kind is FitKind.UNSUPPORTED else Fit(FitKind.EXACT, "JSON")

    return found


def table_report(
    schema: TableSchema, fit: FitOf, problems: Iterable[Problem], mode: Mode = Mode.MIRROR
) -> TableReport:
    """The report on a table. `problems` are those of this table."""
    of_row = _in_messages(fit) if mode is Mode.MESSAGES else fit
    mine = [p for p in problems if p.column]
    columns = tuple(
        column_report(
            c, of_row, {p.code: p for p in mine if p.column == c.name}, is_key=c.name in schema.key
        )
        for c in schema.columns
    )
    more = MESSAGE_COLUMNS if mode is Mode.MESSAGES else extra_columns(mode)
    added = tuple(column_report(c, fit, {}) for c in more)
    return TableReport(schema.id.schema, schema.id.name, columns, bool(schema.key), mode, added)


def of_target(
    problem: Problem, schemas: Mapping[TableId, TableSchema], fit: FitOf
) -> Problem | None:
    """A source's problem as it is with this target; None where it is none. A column whose values
    are carried as text loses nothing in a target that has its own type."""
    facts = dict(problem.facts)
    schema = schemas.get(problem.table) if problem.table else None
    if problem.code != "source:column-partial" or "own_reason" not in facts or schema is None:
        return problem
    column = next((c for c in schema.supported if c.name == problem.column), None)
    if column is None or not fit(column).is_own:
        return problem
    facts["reason"] = facts.pop("own_reason")
    return replace(problem, facts=tuple(facts.items())) if facts["reason"] else None


def fit_problems(schema: TableSchema, fit: FitOf) -> list[Problem]:
    """Problems from the target's types. A column without a type at the target is left out; if it is
    part of the key, that is an error."""
    found: list[Problem] = []
    for column in schema.supported:
        result = fit(column)
        facts = {"native": column.native, "reason": result.reason, "target_type": result.native}
        if result.kind is FitKind.UNSUPPORTED:
            is_key = column.name in schema.key
            found.append(
                Problem.of(
                    "target:column-unsupported",
                    severity=Severity.ERROR if is_key else Severity.WARNING,
                    table=schema.id,
                    column=column.name,
                    **facts,
                )
            )
        elif result.kind is FitKind.LOSSY:
            found.append(
                Problem.of(
                    "target:column-lossy",
                    severity=Severity.WARNING,
                    table=schema.id,
                    column=column.name,
                    **facts,
                )
            )
    return found


def missing_tables(
    chosen: Iterable[TableSelection], found: dict[TableId, TableSchema]
) -> list[Problem]:
    """A problem for each chosen table that the source does not have."""
    return [Problem.of("source:table-missing", table=t.id) for t in chosen if t.id not in found]


def distinct(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems without repetitions, the worst first, otherwise in their order."""
    seen: dict[tuple[Any, ...], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.code, problem.table, problem.column), problem)
    return tuple(sorted(seen.values(), key=lambda p: list(Severity).index(p.severity)))


def report_of(
    schemas: Iterable[TableSchema],
    fit: FitOf,
    problems: Iterable[Problem],
    modes: Mapping[TableId, Mode] = MappingProxyType({}),
) -> Report:
    """The whole report, made now."""
    known = distinct(problems)
    by_table: dict[TableId | None, list[Problem]] = {}
    for problem in known:
        by_table.setdefault(problem.table, []).append(problem)
    tables = tuple(
        table_report(s, fit, by_table.get(s.id, ()), modes.get(s.id, Mode.MIRROR)) for s in schemas
    )
    return Report(tables, known, datetime.now(UTC))
