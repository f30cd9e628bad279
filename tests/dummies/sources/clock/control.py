"""Small questions to the clock."""

from __future__ import annotations

import time
from collections.abc import Sequence

from replicators.sources.clock.params import ClockParams
from replicators.sources.clock.poll import minute_now

from replicators.connectors.closing import Closing
from replicators.connectors.control import LogStatus
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.snapshot import SnapshotWait


class ClockControl(Closing):
    """`LogControl`: the clock strikes whether anybody listens or not."""

    def __init__(self, params: ClockParams, name: str, after: Position | None = None) -> None:
        self._params = params

    def heartbeat(self) -> int:
        return minute_now()

    def status(self, reached: Position | None = None) -> LogStatus:
        return LogStatus(server_time=time.time(), end=self.heartbeat())

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        return ()

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Every strike can be heard anyway."""

    def drop(self) -> None:
        """Nothing was made."""

    def drop_statements(self) -> list[str]:
        return []
