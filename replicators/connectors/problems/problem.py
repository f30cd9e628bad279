"""Problems: what a person should know before a replicator runs, and when one fails."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.message import Message


class Severity(StrEnum):
    """ERROR blocks a deploy; WARNING says what may go wrong; INFO is good to know."""

    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"


class ProblemJson(TypedDict):
    """A problem as REST, stored assessments and pages have it, its texts in words."""

    code: str
    severity: str
    schema: str | None
    table: str | None
    column: str | None
    title: str
    message: str
    suggestion: str
    impact: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A code with the facts that its message needs. The texts are looked up when the problem is
    shown."""

    code: str
    severity: Severity = Severity.ERROR
    table: TableId | None = None
    column: str | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        code: str,
        *,
        severity: Severity = Severity.ERROR,
        table: TableId | None = None,
        column: str | None = None,
        **facts: object,
    ) -> Problem:
        """Make a problem; `facts` are the named values of its message (never secrets, hosts or
        driver texts)."""
        return cls(code, severity, table, column, tuple((k, str(v)) for k, v in facts.items()))

    @property
    def message(self) -> Message:
        """The rendered texts: title, text, suggestion, impact."""
        values = dict(self.facts)
        if self.table is not None:
            values.setdefault("table", str(self.table))
            values.setdefault("schema", self.table.schema)
            values.setdefault("name", self.table.name)
        if self.column is not None:
            values.setdefault("column", self.column)
        return message_of(self.code).render(values)

    def to_json(self) -> ProblemJson:
        """The form that REST and stored assessments use."""
        message = self.message
        return {
            "code": self.code,
            "severity": str(self.severity),
            "schema": self.table.schema if self.table else None,
            "table": self.table.name if self.table else None,
            "column": self.column,
            "title": message.title,
            "message": message.text,
            "suggestion": message.suggestion,
            "impact": message.impact,
        }
