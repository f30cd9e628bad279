"""The capture thread: writes the source's log, raw, into raw segments. Each segment is durable
before it is acknowledged. Decodes nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from replicators.connectors.log import LogBlock, LogReader
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from runners.engine import failpoints
from runners.engine.capture.thread import CaptureThread
from runners.engine.changelog.segments import ChangeLog, SegmentFile
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import SegmentRow, Store

BLOCK_BYTES = 4 << 20
LINGER_SECONDS = 0.2
"""How long a segment waits for more after a quiet time."""
BULK_BYTES = 2 << 20
"""As many in `LINGER_SECONDS` are bulk: few sources write so fast for long."""
BULK_PAUSE_SECONDS = 0.05
"""So long without a block, and the bulk is at its end."""
BULK_SEAL_BYTES = 8 << 20
"""A segment of bulk is sealed at this size: it is decoded while the next one comes in."""


class _Open:
    """The segment that is being written, and the facts for its row."""

    def __init__(self, number: int, file: SegmentFile, block: LogBlock, now: float) -> None:
        self.number = number
        self.file = file
        self.version = block.context_version
        self.began_at = now
        self.messages = 0
        self.is_closed = True
        self.position = block.position


class Capture(CaptureThread):
    """Reads one log. `describe` gives the frozen selection for a segment's head. It is called again
    when the selection or a relation's schema changed."""

    def __init__(
        self,
        reader: LogReader,
        log: ChangeLog,
        store: Store,
        settings: RunnerSettings,
        **options: Any,
    ) -> None:
        super().__init__(reader, log, store, settings, **options)
        self._reader = reader
        self._open: _Open | None = None
        self._tables: list[dict[str, Any]] | None = None
        self._version: int | None = None
        self._sealed_at = -math.inf
        self._counted_at = 0.0
        self._counted = 0

    def begin(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream."""
        self._reader.start(position, tables)
        super().begin(position, tables)

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """The next block begins a segment with a new head."""
        self._reader.follow(tables)
        super().follow(tables)

    def step(self) -> None:
        """Read one block and seal what is due."""
        if not self._has_space():
            return
        block = self._reader.read(wait_seconds=self._wait_seconds(), max_bytes=BLOCK_BYTES)
        if block is None:
            if self._open is None:
                self._record_idle(self._reader.idle_position())
                self._seal_mark()
            elif self.is_in_bulk:
                self._seal_complete()
            self.is_in_bulk, self._counted = False, 0
        else:
            self._take(block)
            self._count(len(block.data))
        self._seal_if_due()

    def _count(self, size: int) -> None:
        """Look whether the source sends in bulk: it does until it pauses, or slows down."""
        now = time.monotonic()
        if not self._counted:
            self._counted_at = now
        self._counted += size
        if now - self._counted_at >= LINGER_SECONDS:
            self.is_in_bulk, self._counted = self._counted >= BULK_BYTES, 0

    def _wait_seconds(self) -> float:
        longest = BULK_PAUSE_SECONDS if self.is_in_bulk else self._idle.read
        if self._open is None:
            return longest
        left = self._due_at(self._open) - time.monotonic()
        return min(longest, max(0.01, left))

    def _due_at(self, current: _Open) -> float:
        """When the open segment is old enough: segments lie `seal_seconds` apart, and none waits
        longer. So a change after a quiet time hardly waits. Bulk waits for its end."""
        seconds = self._settings.seal_seconds
        latest = current.began_at + seconds
        if self.is_in_bulk:
            return latest
        soonest = max(current.began_at + LINGER_SECONDS, self._sealed_at + seconds)
        return min(latest, soonest)

    def _take(self, block: LogBlock) -> None:
        current = self._open
        is_new_schema = self._version != block.context_version or self._is_stale.is_set()
        if current is not None and (is_new_schema or (current.is_closed and not block.ends_closed)):
            self._seal()
        if self._open is None:
            self._begin(block, is_new_schema)
        current = self._open
        assert current is not None
        current.file.append(block.data)
        current.messages += block.messages
        current.is_closed = block.ends_closed
        current.position = block.position
        self.messages += block.messages
        self.bytes += len(block.data)

    def _begin(self, block: LogBlock, is_new_schema: bool) -> None:
        if is_new_schema or self._tables is None:
            self._is_stale.clear()  # first: a change during `_describe` then makes another head
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

    def _seal_if_due(self) -> None:
        current = self._open
        if current is None:
            return
        size, now = current.file.size_bytes, time.monotonic()
        is_due = now >= self._due_at(current) or (self.is_in_bulk and size >= BULK_SEAL_BYTES)
        if size >= self._settings.seal_bytes or (current.is_closed and is_due):
            self._seal()

    def _seal(self) -> None:
        """Steps 1 to 3 of the order of writes."""
        current = self._open
        assert current is not None
        self._open = None
        self._sealed_at = time.monotonic()
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

    def _abandon(self) -> None:
        if self._open is not None:
            self._open.file.discard()

    def _seal_complete(self) -> None:
        if self._open is not None and self._open.is_closed:
            self._seal()

    def _finish(self) -> None:
        if self._open is None:
            return
        if self._open.is_closed:
            self._seal()
        else:
            self._open.file.discard()
            self._open = None


def discard_open_tail(store: Store, log: ChangeLog) -> int:
    """Forget the segments after the last one that ends at a transaction's end: the source sends
    their transaction again whole. Returns how many."""
    rows = store.segments()
    closed = max((r.number for r in rows if r.is_closed), default=-1)
    tail = [r for r in rows if r.number > closed]
    if tail:
        files = store.discard_segments([r.number for r in tail])
        log.unlink([*(r.path for r in tail), *files])
    return len(tail)
