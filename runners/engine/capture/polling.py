"""The capture thread of a polled source. First the change files are durable; then they are listed
with their segment and the position in one transaction; then the position is acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.poll import DeliveryReport, Polled, PollReader
from runners.engine import failpoints
from runners.engine.capture.thread import CaptureThread
from runners.engine.changelog.segments import ChangeLog
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import ChangeFileRow, SegmentRow, Store
from runners.engine.watchdog import Watchdog


class PolledFiles(Protocol):
    """Makes change files from polled changes. No table is dropped while somebody holds `lock`."""

    @property
    def lock(self) -> threading.Lock: ...

    def polled(self, number: int, found: Polled) -> list[ChangeFileRow]:
        """The durable change files of segment `number`, for the tables that are copied."""
        ...


class PollCapture(CaptureThread):
    """Polls one source. A segment holds what one poll brought: it ends at a transaction's end, and
    its own file holds only its head."""

    def __init__(
        self,
        reader: PollReader,
        log: ChangeLog,
        store: Store,
        settings: RunnerSettings,
        *,
        files: PolledFiles,
        seconds: float,
        watchdog: Watchdog,
        **options: Any,
    ) -> None:
        super().__init__(reader, log, store, settings, **options)
        self._reader = reader
        self._files = files
        self._seconds = seconds
        self._watchdog = watchdog
        self._tables: Sequence[TableSchema] | None = None
        self._version: int | None = None
        self._reported: frozenset[DeliveryReport] = frozenset()

    def step(self) -> None:
        """Poll once."""
        if not self._has_space():
            return
        if self._tables is None or self._is_stale.is_set():
            self._is_stale.clear()  # first: after a change during `_describe` we ask again
            self._tables = self._describe()
        assert self.position is not None
        limit = self._settings.seal_bytes
        with self._watchdog.step("poll"):
            found = self._reader.poll(self.position, self._tables, max_bytes=limit)
        if found.schema_version != self._version:
            self._version, self._tables = found.schema_version, None
            return  # the next poll asks again, with the tables as they are now
        if self._is_stale.is_set():
            # A table that was chosen meanwhile may lack changes here: the next poll asks again.
            return
        self._report(found)
        rows = sum(part.rows.num_rows for part in found.changes)
        if rows:
            self._record(found, rows)
        else:
            self._record_idle(found.position)
            self._seal_mark()
        if not found.has_more:
            self._stop.wait(self._seconds)

    def _report(self, found: Polled) -> None:
        """Record the deliveries that were not recorded yet. This comes before their changes: after
        a crash the poll reports them again."""
        self.next_at = found.next_at
        fresh = [r for r in found.deliveries if r not in self._reported]
        if fresh:
            self._store.record_deliveries(fresh)
            self._reported = frozenset(found.deliveries)

    def _record(self, found: Polled, rows: int) -> None:
        """The order of writes: files, then one transaction, then acknowledged."""
        began, number = time.time(), self._number
        head = {
            "segment": number,
            "tables": [part.schema.to_json() for part in found.changes],
            "position": found.position.to_json(),
        }
        with self._files.lock:
            sealed = self._log.begin_segment(number, head).seal()
            self._log.added(sealed.size_bytes)
            self._number += 1
            files = self._files.polled(number, found)
            row = SegmentRow(
                number=number,
                path=sealed.path,
                size_bytes=sealed.size_bytes,
                crc32=sealed.crc32,
                position=found.position,
                is_closed=True,
                messages=rows,
                is_decoded=True,
                sealed_at=began,
            )
            self._store.record_segment(row, found.position, files)
        failpoints.hit("segment_recorded")
        self._on_seal(row, files)
        self.messages += rows
        self.bytes += sum(file.size_bytes for file in files)
        self._settle(found.position)

    def _settle(self, position: Position) -> None:
        self.position = position
        self._reader.acknowledge(position)
        failpoints.hit("source_acknowledged")
