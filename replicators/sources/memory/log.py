"""The in-memory source has no log; only what a delete needs is here."""

from __future__ import annotations

from collections.abc import Sequence

from replicators.connectors.closing import Closing
from replicators.connectors.control import LogStatus
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.memory.catalog import require_reachable
from replicators.sources.memory.params import MemoryParams

DROPPED: list[str] = []


class MemoryControl(Closing):
    """`LogControl`; what was dropped stands in `DROPPED`."""

    def __init__(self, params: MemoryParams, name: str, after: Position | None = None) -> None:
        self._params = params
        self._name = name

    def heartbeat(self) -> int:
        return 0

    def status(self, reached: Position | None = None) -> LogStatus:
        return LogStatus()

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """There is no stream."""
        return ()

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """There is no stream."""

    def drop(self) -> None:
        require_reachable(self._params)
        DROPPED.append(self._name)

    def drop_statements(self) -> list[str]:
        return [f"DROP SLOT {self._name};"]

    def close(self) -> None:
        """Nothing is open."""
