"""Small questions about the deliveries, beside the poll."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from replicators.connectors import files
from replicators.connectors.closing import Closing
from replicators.connectors.control import LogStatus
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.compared.errors import reading
from replicators.sources.compared.journal import Journal
from replicators.sources.compared.params import ComparedParams


class ComparedControl(Closing):
    """`SourceControl` over the journal."""

    def __init__(self, params: ComparedParams, name: str, after: Position | None = None) -> None:
        self._params = params
        self._journal = Journal(params.folder_of(name))

    def heartbeat(self) -> int:
        """Writes nothing: a poll reaches the end without a mark."""
        return self._journal.read().end.ordinal

    def status(self, reached: Position | None = None) -> LogStatus:
        return LogStatus(
            is_active=True, server_time=time.time(), end=self._journal.read().end.ordinal
        )

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """Does nothing: each poll names its tables."""
        return ()

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Does nothing: each poll names its tables."""

    def drop(self) -> None:
        """Remove the replicator's folder of the state."""
        root = self._params.state_root
        if not files.is_url(root):
            with reading("state"):
                if os.path.lexists(root) and not os.path.isdir(root):
                    raise NotADirectoryError
        self._journal.drop()

    def drop_statements(self) -> list[str]:
        return [f"Remove the folder {self._journal.folder}"]

    def close(self) -> None:
        """Nothing is open."""
