"""The consistent snapshot that tables are copied in: the first start's, or a new one for tables
that wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.changes import last_sequence
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.schema.numbering import with_numbers
from replicators.connectors.snapshot import (
    OpenTransaction,
    OwnSnapshotSession,
    SnapshotSession,
    SnapshotWait,
)
from runners.engine.capture.first_snapshot import FirstSnapshot, places
from runners.engine.changelog.backlog import Backlog
from runners.engine.schema.selection import unmoved
from runners.engine.snapshot.consistent import ConsistentSnapshot, SnapshotSource, TableCopier
from runners.engine.store.events import Events

logger = logging.getLogger("replicator.snapshot")

SAY_AFTER_SECONDS = 2.0
SAY_EVERY_SECONDS = 30.0
OPENINGS = 5


class StopAsked(Exception):
    """A stop was asked during the wait for a consistent snapshot."""


class PatientWait:
    """A `SnapshotWait` that reports, in the log, in an event and in the status, which transactions
    the run waits for. It gives up at the limit (`source:snapshot-waits`, or `source:lock-waits`) or
    at a stop (`StopAsked`)."""

    def __init__(
        self,
        limit_seconds: float,
        should_stop: Callable[[], bool],
        events: Events | None = None,
    ) -> None:
        self._limit = limit_seconds
        self._should_stop = should_stop
        self._events = events
        self._reported: tuple[tuple[int, str], ...] | None = None
        self._say_at = SAY_AFTER_SECONDS

    def __call__(self, waited_seconds: float, holders: Sequence[OpenTransaction]) -> None:
        if self._should_stop():
            raise StopAsked
        if waited_seconds >= self._limit:
            holder = str(holders[0]) if holders else "a transaction that it does not name"
            code = "source:lock-waits" if _is_lock(holders) else "source:snapshot-waits"
            raise ReplicationError(code, seconds=f"{waited_seconds:.0f}", holder=holder)
        if waited_seconds < SAY_AFTER_SECONDS:
            return
        shown = "; ".join(map(str, holders)) or "not told by the server which"
        if waited_seconds >= self._say_at:
            self._say_at = waited_seconds + SAY_EVERY_SECONDS
            logger.warning("%s since %.0f s: %s.", _what(holders), waited_seconds, shown)
        if self._events is not None:
            who = tuple((h.pid, h.name) for h in holders)
            self._events.waits(f"{_what(holders)}: {shown}", is_new=who != self._reported)
            self._reported = who


def _is_lock(holders: Sequence[OpenTransaction]) -> bool:
    return any(h.lock for h in holders)


def _what(holders: Sequence[OpenTransaction]) -> str:
    if _is_lock(holders):
        return "The stream waits for a lock of the source's tables"
    return "A consistent snapshot waits for a transaction of the source"


class ConsistentSnapshots(SnapshotSource):
    """Holds at most one session open, with the schemas of the tables that were part of the stream
    before its point: only these may be copied in it. `publish` adds every chosen table to the
    stream; `open_snapshot` opens a new consistent snapshot. If `describe` gives another schema for
    a table once the snapshot is open, the table can't be copied in it: the change may have happened
    before the snapshot."""

    def __init__(
        self,
        *,
        backlog: Backlog,
        publish: Callable[[], Sequence[TableSchema]],
        describe: Callable[[], Sequence[TableSchema]],
        open_snapshot: Callable[[SnapshotWait], SnapshotSession],
        snapshotter: Callable[[SnapshotSession, TableId], TableCopier],
        wait: Callable[[], SnapshotWait],
        first: FirstSnapshot | None,
        columns: ColumnKnowledge,
    ) -> None:
        self._columns = columns
        self._backlog = backlog
        self._publish = publish
        self._describe = describe
        self._open_snapshot = open_snapshot
        self._make = snapshotter
        self._wait = wait
        self._lock = threading.Lock()
        self._forgotten: set[TableId] = set()
        self._session = first[0] if first else None
        self._schemas = {s.id: s for s in first[1]} if first else {}
        self._places = dict(first[2]) if first else {}

    def snapshot(self, table: TableId, *, is_exact: bool = False) -> ConsistentSnapshot | None:
        """The present consistent snapshot, or a new one. A new one is opened where the present one
        was lost, the table was not part of the stream before it, or the table was copied in it
        already. `is_exact`: the copy may not hold what was committed after its point."""
        with self._lock:
            for gone in list(self._forgotten):
                self._forgotten.discard(gone)
                self._schemas.pop(gone, None)
            session = self._session
            if session is None or table not in self._schemas or not session.is_alive():
                try:
                    session = self._open(table)
                except StopAsked:
                    return None
            schema = self._schemas.pop(table, None)
            if schema is None:
                raise ReplicationError("source:table-missing", table=table)
            point = session.point
            if isinstance(session, OwnSnapshotSession):
                point = session.point_of(schema, is_exact=is_exact)
            position = point.position.ordinal
            if self._columns is ColumnKnowledge.BY_STATEMENTS:
                schema = replace(with_numbers(schema), upto=position, copy_numbers=True)
            sequence = last_sequence(self._backlog.last_before(position))
            place = self._places.get(table)
            return ConsistentSnapshot(self._make(session, table), schema, position, sequence, place)

    def forget(self, table: TableId) -> None:
        """The table left the stream, so the present consistent snapshot can't be used for it any
        more. Does not wait for one that is being opened, which may take minutes."""
        self._forgotten.add(table)

    def _open(self, table: TableId) -> SnapshotSession:
        for _ in range(OPENINGS):
            self._close()
            schemas = self._publish()
            self._session = self._open_snapshot(self._wait())
            self._places = places(self._session, schemas)
            self._schemas = {s.id: s for s in unmoved(schemas, self._describe())}
            if table in self._schemas or all(s.id != table for s in schemas):
                return self._session
            logger.info(
                "The schema changed while a consistent snapshot was opened.",
                extra={"table": str(table)},
            )
        raise ReplicationError("source:table-altered", table=table)

    def _close(self) -> None:
        session, self._session = self._session, None
        self._schemas = {}
        if session is not None:
            session.close()

    def release(self) -> None:
        """No table waits: the source may forget the consistent snapshot. While one is being opened,
        the next call does this."""
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()
