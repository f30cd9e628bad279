"""The capture thread: the source's log, raw, into raw segments; durable first, then acknowledged. Decodes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from replicators.connectors.log import LogBlock, LogReader
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from runners.engine import failpoints
from runners.engine.changelog.segments import ChangeLog, SegmentFile
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import SegmentRow, Store

BLOCK_BYTES = 4 << 20
IDLE_RECORD_SECONDS = 2.0
SPACE_CHECK_SECONDS = 2.0


class _Open:
    """The segment that is being written, and what its row will say."""

    def __init__(self, number: int, file: SegmentFile, block: LogBlock, now: float) -> None:
        self.number = number
        self.file = file
        self.version = block.context_version
        self.began_at = now
        self.messages = 0
        self.is_closed = True
        self.position = block.position


class Capture:
    """Reads one log until asked to stop. `run` is the thread's body; a fault ends it and is kept in `fault`.

    `describe` gives the frozen selection for a segment's head; it is asked again whenever a relation's shape changed.
    """

    def __init__(
        self,
        reader: LogReader,
        log: ChangeLog,
        store: Store,
        settings: RunnerSettings,
        *,
        describe: Callable[[], Sequence[TableSchema]],
        next_number: int,
        on_seal: Callable[[SegmentRow | None], None] = lambda row: None,
    ) -> None:
        self._reader = reader
        self._log = log
        self._store = store
        self._settings = settings
        self._describe = describe
        self._number = next_number
        self._on_seal = on_seal
        self._open: _Open | None = None
        self._is_closed = True
        self._tables: list[dict[str, Any]] | None = None
        self._version: int | None = None
        self._is_stale = threading.Event()
        self._is_mark_asked = threading.Event()
        self._idle_recorded_at = 0.0
        self._space_checked_at = 0.0
        self._stop = threading.Event()
        self.position: Position | None = None
        self.fault: BaseException | None = None
        self.is_waiting_for_space = False
        self.messages = 0
        self.bytes = 0

    def stop(self) -> None:
        """Ask the thread to seal what is complete and end."""
        self._stop.set()

    def refresh_tables(self) -> None:
        """The selection changed: the next block begins a segment with a new head."""
        self._is_stale.set()

    def mark(self) -> None:
        """At the next quiet moment an empty segment is sealed, so that a merge without changes has a sequence of its own; never
        within a transaction, whose first part would count as a whole one. Where it is not quiet the log goes on by itself."""
        self._is_mark_asked.set()

    def run(self) -> None:
        """Read until stopped. Never raises: the run's thread looks at `fault`."""
        try:
            while not self._stop.is_set():
                self.step()
            self._finish()
        except BaseException as err:  # noqa: BLE001 - handed to the run's thread
            self.fault = err
            if self._open is not None:
                self._open.file.discard()
            self._on_seal(None)

    def step(self) -> None:
        """Read one block and seal what is due."""
        if not self._has_space():
            return
        block = self._reader.read(wait_seconds=self._wait_seconds(), max_bytes=BLOCK_BYTES)
        if block is None:
            if self._open is None:
                self._record_idle()
                self._seal_mark()
        else:
            self._take(block)
        self._seal_if_due()

    def _wait_seconds(self) -> float:
        if self._open is None:
            return 0.25
        left = self._open.began_at + self._settings.seal_seconds - time.monotonic()
        return min(0.25, max(0.01, left))

    def _take(self, block: LogBlock) -> None:
        current = self._open
        is_new_shape = self._version != block.context_version or self._is_stale.is_set()
        if current is not None and (is_new_shape or (current.is_closed and not block.ends_closed)):
            self._seal()
        if self._open is None:
            self._begin(block, is_new_shape)
        current = self._open
        assert current is not None
        current.file.append(block.data)
        current.messages += block.messages
        current.is_closed = block.ends_closed
        current.position = block.position
        self.messages += block.messages
        self.bytes += len(block.data)

    def _begin(self, block: LogBlock, is_new_shape: bool) -> None:
        if is_new_shape or self._tables is None:
            self._is_stale.clear()  # before the question: a change during it makes another head
            self._tables = [t.to_json() for t in self._describe()]
            self._version = block.context_version
        head = {
            "segment": self._number,
            "context": block.context,
            "tables": self._tables,
            "position": block.position.to_json(),
        }
        file = self._log.begin_segment(self._number, head)
        self._open = _Open(self._number, file, block, time.monotonic())
        self._number += 1

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

    def _seal_if_due(self) -> None:
        current = self._open
        if current is None:
            return
        age = time.monotonic() - current.began_at
        is_full = current.file.size_bytes >= self._settings.seal_bytes
        if is_full or (current.is_closed and age >= self._settings.seal_seconds):
            self._seal()

    def _seal(self) -> None:
        """Steps 1 to 3 of the order of writes."""
        current = self._open
        assert current is not None
        self._open = None
        sealed = current.file.seal()
        self._log.added(sealed.size_bytes)
        row = SegmentRow(
            number=current.number,
            path=sealed.path,
            size_bytes=sealed.size_bytes,
            crc32=sealed.crc32,
            position=current.position,
            is_closed=current.is_closed,
            messages=current.messages,
            sealed_at=time.time(),
        )
        self._store.record_segment(row, current.position)
        self._is_closed = current.is_closed
        failpoints.hit("segment_recorded")
        self._on_seal(row)
        self.position = current.position
        self._reader.acknowledge(current.position)
        failpoints.hit("source_acknowledged")

    def _record_idle(self) -> None:
        """A keepalive's position is recorded before it is acknowledged (CORRECTNESS 23)."""
        now = time.monotonic()
        position = self._reader.idle_position()
        if position is None or now - self._idle_recorded_at < IDLE_RECORD_SECONDS:
            return
        if self.position is not None and position.value <= self.position.value:
            return
        self._store.record_position(position)
        self._reader.acknowledge(position)
        self.position = position
        self._idle_recorded_at = now

    def _has_space(self) -> bool:
        """Stop reading at the log's limit or the disk's reserve, and go on telling the source that we live."""
        now = time.monotonic()
        if now - self._space_checked_at >= SPACE_CHECK_SECONDS:
            self._space_checked_at = now
            full = self._log.size_bytes > self._settings.log_limit_bytes
            self.is_waiting_for_space = (
                full or self._log.free_bytes() < self._settings.disk_reserve_bytes
            )
            if self.is_waiting_for_space and self.position is not None:
                self._reader.acknowledge(self.position)
        if self.is_waiting_for_space:
            if self._open is not None and self._open.is_closed:
                self._seal()
            self._stop.wait(0.5)
            return False
        return True

    def _finish(self) -> None:
        if self._open is None:
            return
        if self._open.is_closed:
            self._seal()
        else:
            self._open.file.discard()
            self._open = None


def discard_open_tail(store: Store, log: ChangeLog) -> int:
    """Forget the segments after the last one that ends at a transaction's end: their transaction comes again whole.
    How many."""
    rows = store.segments()
    closed = max((r.number for r in rows if r.is_closed), default=-1)
    tail = [r for r in rows if r.number > closed]
    if tail:
        files = store.discard_segments([r.number for r in tail])
        log.unlink([*(r.path for r in tail), *files])
    return len(tail)
