"""Preflight of the in-memory target."""

from __future__ import annotations

from collections.abc import Sequence

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.problem import Problem
from replicators.targets.memory.params import MemoryParams


class MemoryChecks(Closing):
    """`TargetChecks` whose answers the parameters decide."""

    def __init__(self, params: MemoryParams) -> None:
        self._params = params

    def connection(self) -> list[Problem]:
        if self._params.fault == "unreachable":
            return [Problem.of("target:unreachable")]
        return []

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        if self._params.fault != "taken":
            return []
        return [
            Problem.of(
                "target:table-taken", table=t.id, target=f"{self._params.namespace}.{t.id.name}"
            )
            for t in tables
        ]

    def close(self) -> None:
        """Nothing is open."""
