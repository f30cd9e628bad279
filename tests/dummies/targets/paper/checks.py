"""Preflight of paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from replicators.targets.paper.params import PaperParams

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.problem import Problem

ROOM = 2


class PaperChecks:
    """`TargetChecks`: whether there is paper, and wide enough."""

    def __init__(self, params: PaperParams) -> None:
        self._params = params

    def connection(self) -> list[Problem]:
        if self._params.sheets == 0:
            return [Problem.of("target:paper-used-up", sheets=0)]
        return []

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        return [
            Problem.of("target:paper-too-narrow", table=t.id, count=len(t.columns))
            for t in tables
            if len(t.columns) > ROOM
        ]

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
