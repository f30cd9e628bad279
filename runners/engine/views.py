"""The consistent view that tables are copied in: the first start's, or one made again for tables that wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from replicators.connectors.errors import ReplicationError
from replicators.connectors.events import last_sequence
from replicators.connectors.schema import TableId, TableSchema
from replicators.connectors.source import SnapshotSession
from runners.engine.backlog import Backlog
from runners.engine.snapshot import Snapshotter
from runners.engine.tables import SnapshotSource, View

logger = logging.getLogger("replicator.views")


class Views(SnapshotSource):
    """Holds at most one session open. `describe` asks the source for the shapes of tables as they are now; `again` makes
    tables part of the stream and opens a new view."""

    def __init__(
        self,
        *,
        backlog: Backlog,
        describe: Callable[[], Sequence[TableSchema]],
        again: Callable[[Sequence[TableSchema]], SnapshotSession],
        snapshotter: Callable[[SnapshotSession], Snapshotter],
        first: SnapshotSession | None,
    ) -> None:
        self._backlog = backlog
        self._describe = describe
        self._again = again
        self._make = snapshotter
        self._lock = threading.Lock()
        self._session = first
        self._is_first = first is not None
        self._shapes: dict[TableId, TableSchema] = {}
        self._used: set[TableId] = set()

    def view(self, table: TableId) -> View | None:
        """The present view, or a new one where it went away or was used for this table before."""
        with self._lock:
            if self._session is None or table in self._used or not self._session.is_alive():
                self._open()
            session = self._session
            assert session is not None
            if not self._shapes:
                self._shapes = {s.id: s for s in self._describe()}
            schema = self._shapes.get(table)
            if schema is None:
                raise ReplicationError("source:table-missing", table=table)
            self._used.add(table)
            position = session.point.position.value
            sequence = last_sequence(self._backlog.last_before(position))
            return View(self._make(session), schema, position, sequence)

    def _open(self) -> None:
        self._close()
        shapes = list(self._describe())
        logger.info(
            "Opening a consistent view of the source; it waits for transactions that are open there."
        )
        self._session = self._again(shapes)
        self._shapes = {s.id: s for s in shapes}

    def _close(self) -> None:
        session, self._session = self._session, None
        self._shapes, self._used = {}, set()
        if session is not None:
            session.close()

    def release(self) -> None:
        """No table waits: the source may forget the view."""
        with self._lock:
            if self._session is not None:
                self._close()
