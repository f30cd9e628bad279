"""Preflight of paper."""

from __future__ import annotations

from collections.abc import Sequence

from replicators.targets.paper.params import PaperParams

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.problem import Problem

ROOM = 2


class PaperChecks(Closing):
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
