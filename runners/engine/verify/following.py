"""How far a replicator has come, as another process sees it, and the wait until its target has
reached a position of the source."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from replicators.connectors.model.changes import last_sequence
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.store.protocol import ChangeFileRow, Store, TableRow, TableState
from runners.engine.store.quarantine import QuarantinedRow

TURN_SECONDS = 0.25
NUDGE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Captured:
    """How far the source's log is captured (-1: nowhere), and the last segment's number."""

    position: int
    segment: int


class Followed(Protocol):
    """Reads what the store knows of a replicator. Writes nothing, and needs no lease."""

    def tables(self) -> Sequence[TableRow]:
        """Every table that was ever chosen."""
        ...

    def table(self, table: TableId) -> TableRow:
        """One table as it is now."""
        ...

    def is_running(self) -> bool:
        """Whether a run brings changes to the target, or will soon."""
        ...

    def captured(self) -> Captured:
        """How far the log is captured now."""
        ...

    def position(self) -> Position | None:
        """The position up to which the log is captured; None before the first capture."""
        ...

    def first_segment(self) -> int:
        """The lowest number of a segment that is listed; the next one's number where none is."""
        ...

    def is_decoded(self, upto: int) -> bool:
        """Whether all segments up to that number are decoded."""
        ...

    def change_files(self, table: TableId, *, after: int, upto: int) -> list[ChangeFileRow]:
        """As the store's."""
        ...

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedRow]:
        """As the store's."""
        ...


class FollowedStore:
    """`Followed` over a whole store: for tests, and where a store is open anyway."""

    def __init__(self, store: Store, is_running: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self.is_running = is_running
        self.table = store.table
        self.tables = store.tables
        self.change_files = store.change_files
        self.quarantined = store.quarantined

    def captured(self) -> Captured:
        memory = self._store.memory()
        position = memory.position.ordinal if memory.position is not None else -1
        return Captured(position, memory.last_segment)

    def position(self) -> Position | None:
        return self._store.memory().position

    def first_segment(self) -> int:
        following = self._store.memory().last_segment + 1
        return min((s.number for s in self._store.segments()), default=following)

    def is_decoded(self, upto: int) -> bool:
        return all(s.is_decoded for s in self._store.segments() if s.number <= upto)


class Stopped(Exception):
    """A stop was asked."""


class Follower:
    """Waits for one table. `nudge` makes the source's stream move on where the database is idle;
    `on_wait` hears about once a second that it waits."""

    def __init__(
        self,
        followed: Followed,
        table: TableRow,
        *,
        seconds: float,
        should_stop: Callable[[], bool],
        nudge: Callable[[], None] = lambda: None,
        on_wait: Callable[[], None] = lambda: None,
        timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._followed = followed
        self._table = table
        self._seconds = seconds
        self._should_stop = should_stop
        self._nudge = nudge
        self._on_wait = on_wait
        self._timer = timer
        self._sleep = sleep

    def now(self) -> TableRow:
        """The table now. `verify:failing`, `verify:changed` where it is no longer the table that is
        compared."""
        row = self._followed.table(self._table.id)
        if row.state is TableState.FAILING:
            raise ReplicationError("verify:failing", table=row.id, reason=row.error_code)
        if row.state is not TableState.REPLICATING or _kind(row) != _kind(self._table):
            raise ReplicationError("verify:changed", table=row.id)
        return row

    def reached(self, position: int) -> TableRow | None:
        """The table, where everything that was committed up to `position` is in the target; None
        while it is not."""
        captured = self._followed.captured()
        return self._merged(captured.segment) if captured.position >= position else None

    def wait(self, position: int) -> TableRow:
        """Wait for that. `verify:paused` where no run brings changes; `verify:behind` after too
        long. Raises `Stopped`."""
        began = told = self._timer()
        nudged = began - NUDGE_SECONDS
        upto: int | None = None
        while True:
            if self._should_stop():
                raise Stopped
            self.now()
            captured = self._followed.captured()
            if upto is None and captured.position >= position:
                upto = captured.segment
            if upto is not None and (row := self._merged(upto)) is not None:
                return row
            now = self._timer()
            if not self._followed.is_running():
                raise ReplicationError("verify:paused", table=self._table.id)
            if now - began > self._seconds:
                seconds = f"{self._seconds:.0f}"
                raise ReplicationError("verify:behind", table=self._table.id, seconds=seconds)
            if upto is None and now - nudged >= NUDGE_SECONDS:
                nudged = now
                self._nudge()
            if now - told >= 1.0:
                told = now
                self._on_wait()
            self._sleep(TURN_SECONDS)

    def _merged(self, upto: int) -> TableRow | None:
        """The table, where everything in segments up to that number is merged."""
        if not self._followed.is_decoded(upto):
            return None
        row, end = self.now(), last_sequence(upto)
        if row.merged_sequence >= end:
            return row
        waiting = self._followed.change_files(row.id, after=row.merged_sequence, upto=end)
        return None if waiting else row


def _kind(row: TableRow) -> tuple[object, ...]:
    """What may not change while a table is compared."""
    schema = row.schema
    columns = (schema.columns, schema.key, schema.filter) if schema is not None else ()
    return row.generation, row.mode, columns
