"""Preflight of the in-memory source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replicators.connectors.closing import Closing
from replicators.connectors.filters.problems import filter_problems
from replicators.connectors.model.schema import TableSelection
from replicators.connectors.model.types import Unsupported
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.memory.catalog import TABLES, require_reachable
from replicators.sources.memory.database import database
from replicators.sources.memory.params import MemoryParams


class MemoryChecks(Closing):
    """`Checks`: problems that the parameters and the tables name."""

    def __init__(self, params: MemoryParams) -> None:
        self._params = params

    def connection(self) -> list[Problem]:
        try:
            require_reachable(self._params)
        except ReplicationError as err:
            facts: dict[str, Any] = {**err.facts}
            return [Problem.of(err.code, **facts)]
        return []

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        tables_there = {**TABLES, **database(self._params.host).tables}
        found: list[Problem] = []
        for selected in tables:
            table = tables_there.get(selected.id)
            if table is None:
                found.append(Problem.of("source:table-missing", table=selected.id))
                continue
            if not table.key:
                warning = Problem.of(
                    "source:no-key", severity=Severity.WARNING, table=table.id, quoted=table.id
                )
                found.append(warning)
            found += filter_problems(selected, table, lambda _: "")
            found += [
                Problem.of(
                    "source:column-unsupported",
                    severity=Severity.WARNING,
                    table=table.id,
                    column=c.name,
                    native=c.native,
                )
                for c in table.columns
                if isinstance(c.type, Unsupported)
                and (not selected.columns or c.name in selected.columns)
            ]
        return found

    def close(self) -> None:
        """Nothing is open."""
