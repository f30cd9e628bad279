"""Preflight of the clock."""

from __future__ import annotations

from collections.abc import Sequence

from replicators.sources.clock.catalog import TABLES
from replicators.sources.clock.params import ClockParams

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableSelection
from replicators.connectors.problems.columns import column_problems
from replicators.connectors.problems.problem import Problem, Severity

SHORT_HOURS = 12


class ClockChecks(Closing):
    """`Checks`: whether it goes, and can be heard."""

    def __init__(self, params: ClockParams) -> None:
        self._params = params

    def connection(self) -> list[Problem]:
        if self._params.winding == 0:
            return [Problem.of("source:clock-stopped", place=self._params.place)]
        return []

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        found: list[Problem] = []
        for asked in (t for t in tables if t.id in TABLES):
            found += column_problems(asked, TABLES[asked.id], {})
            if self._params.winding < SHORT_HOURS:
                severity = Severity.WARNING
                found.append(Problem.of("source:clock-muffled", severity=severity, table=asked.id))
        return found
