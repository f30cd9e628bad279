"""Control of the in-memory source. Tests see in `DROPPED` what a delete removed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from replicators.connectors.closing import Closing
from replicators.connectors.control import LogStatus
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.memory.catalog import require_reachable
from replicators.sources.memory.database import database
from replicators.sources.memory.params import MemoryParams

DROPPED: list[str] = []


class MemoryControl(Closing):
    """`SourceControl`; `DROPPED` records what was dropped."""

    def __init__(self, params: MemoryParams, name: str, after: Position | None = None) -> None:
        self._params = params
        self._name = name
        self._database = database(params.host)

    def heartbeat(self) -> int:
        """Writes nothing: a poll reaches the end of the changes without a mark."""
        require_reachable(self._params)
        return self._database.end

    def status(self, reached: Position | None = None) -> LogStatus:
        require_reachable(self._params)
        is_active = self._name in self._database.slots
        return LogStatus(is_active=is_active, server_time=time.time(), end=self._database.end)

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """Does nothing: each poll names its tables."""
        return ()

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Does nothing: each poll names its tables."""

    def drop(self) -> None:
        require_reachable(self._params)
        self._database.slots.pop(self._name, None)
        DROPPED.append(self._name)

    def drop_statements(self) -> list[str]:
        return [f"DROP SLOT {self._name};"]

    def close(self) -> None:
        """Nothing is open."""
