"""What every capture thread does: it runs until it is asked to stop, waits for space, marks, and
records quiet positions. The subclasses (`reader`, `polling`) read the changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from runners.engine.changelog.segments import ChangeLog
from runners.engine.idle import OWN, Idle
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import ChangeFileRow, SegmentRow, Store

SPACE_CHECK_SECONDS = 2.0


class Acknowledging(Protocol):
    """The part of either kind of reader that hears which position is durable."""

    def acknowledge(self, position: Position) -> None: ...


class OnSeal(Protocol):
    """Hears of every recorded segment, with its change files if they exist already. None means a
    fault."""

    def __call__(self, row: SegmentRow | None, files: Sequence[ChangeFileRow] = (), /) -> None: ...


def _nobody(row: SegmentRow | None, files: Sequence[ChangeFileRow] = ()) -> None:
    """Do nothing."""


class CaptureThread:
    """Reads one source until asked to stop. `run` is the thread's body. A fault ends it and is kept
    in `fault`.

    `describe` gives the chosen tables. It is called again whenever they changed. `next_at`: when
    the source will have its next data, where it says so (seconds since the epoch).
    `is_source_closed`: it was ended until there is room, and its connection closed. `is_in_bulk`:
    the source sends what was written long before, as fast as it can.
    """

    def __init__(
        self,
        reader: Acknowledging,
        log: ChangeLog,
        store: Store,
        settings: RunnerSettings,
        *,
        describe: Callable[[], Sequence[TableSchema]],
        next_number: int,
        on_seal: OnSeal = _nobody,
        idle: Idle = OWN,
    ) -> None:
        self._acknowledge = reader.acknowledge
        self._log = log
        self._store = store
        self._settings = settings
        self._describe = describe
        self._number = next_number
        self._on_seal = on_seal
        self._idle = idle
        self._is_closed = True
        self._is_stale = threading.Event()
        self._is_mark_asked = threading.Event()
        self._idle_recorded_at = 0.0
        self._space_checked_at = 0.0
        self._stop = threading.Event()
        self.position: Position | None = None
        self.fault: BaseException | None = None
        self.is_waiting_for_space = False
        self.is_source_closed = False
        self.is_in_bulk = False
        self._waits_since: float | None = None
        self.next_at: float | None = None
        self.messages = 0
        self.bytes = 0

    def begin(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Ask the source for the changes of these tables after `position`."""
        self.position = position

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """Called from another thread: these tables are chosen now. What is read from now on has all
        of them."""
        self.refresh_tables()

    def stop(self) -> None:
        """Ask the thread to seal what is complete and end."""
        self._stop.set()

    def refresh_tables(self) -> None:
        """The selection changed: the next block begins a segment with a new head."""
        self._is_stale.set()

    def mark(self) -> None:
        """Seal an empty segment at the next quiet moment, so that a merge without changes has a
        sequence of its own. It is never sealed within a transaction: the first part would count as
        a whole transaction. Where the source is not quiet, the log advances anyway."""
        self._is_mark_asked.set()

    def run(self) -> None:
        """Read until stopped. Never raises: the pipeline looks at `fault`."""
        try:
            while not self._stop.is_set():
                self.step()
            self._finish()
        except BaseException as err:  # noqa: BLE001 - handed to the pipeline's thread
            self.fault = err
            self._abandon()
            self._on_seal(None)

    def step(self) -> None:
        """Read once, and record what is due."""
        raise NotImplementedError

    def _abandon(self) -> None:
        """Throw away what is not sealed."""

    def _finish(self) -> None:
        """Seal what is complete."""

    def _seal_complete(self) -> None:
        """There is no space: seal what is complete."""

    def _seal_mark(self) -> None:
        if self.position is None or not self._is_closed or not self._is_mark_asked.is_set():
            return
        self._is_mark_asked.clear()
        sealed = self._log.begin_segment(self._number, {"segment": self._number}).seal()
        self._log.added(sealed.size_bytes)
        row = SegmentRow(
            number=self._number,
            path=sealed.path,
            size_bytes=sealed.size_bytes,
            crc32=sealed.crc32,
            position=self.position,
            is_closed=True,
            is_decoded=True,
            sealed_at=time.time(),
        )
        self._number += 1
        self._store.record_segment(row, self.position)
        self._on_seal(row)

    def _record_idle(self, position: Position | None) -> None:
        """A position without rows is recorded before it is acknowledged (CORRECTNESS 23)."""
        now = time.monotonic()
        if position is None or now - self._idle_recorded_at < self._idle.record:
            return
        if self.position is not None and position.ordinal <= self.position.ordinal:
            return
        self._store.record_position(position)
        self._acknowledge(position)
        self.position = position
        self._idle_recorded_at = now

    @property
    def stalled_seconds(self) -> float | None:
        """For how long reading has waited for room; None while it reads."""
        since = self._waits_since
        return None if since is None else time.monotonic() - since

    def look_for_space(self) -> bool:
        """Look at the log's size and its disk. Returns whether reading has to wait."""
        full = self._log.size_bytes > self._settings.log_limit_bytes
        full = full or self._log.free_bytes() < self._settings.disk_reserve_bytes
        self.is_waiting_for_space = full
        if not full:
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = time.monotonic()
        return full

    def _has_space(self) -> bool:
        """Whether there is space. At the log's limit or the disk's reserve the thread stops
        reading, but keeps telling the source that it lives."""
        now = time.monotonic()
        if now - self._space_checked_at >= SPACE_CHECK_SECONDS:
            self._space_checked_at = now
            if self.look_for_space() and self.position is not None:
                self._acknowledge(self.position)
        if self.is_waiting_for_space:
            self._seal_complete()
            self._stop.wait(0.5)
            return False
        return True
