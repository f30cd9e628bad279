"""Heartbeat, lag and metrics: a thread that asks the source for its clock and log, and writes what
the pages show."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from replicators.connectors.control import LogStatus, SourceControl
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.capture.growth import Growth
from runners.engine.capture.thread import CaptureThread
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.idle import OWN, Idle
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import Store, TableMetrics, TableState

logger = logging.getLogger("replicator.heartbeat")
MARKS_KEPT = 1000


class Heartbeat:
    """`known_until` is a time of the source: everything committed until then is known here. It is
    the time of the last heartbeat that came back through capture and decoding (CORRECTNESS 33).
    `marks`: the last of these times, each with the segment up to which the log was decoded by
    then."""

    def __init__(
        self,
        control: Callable[[], SourceControl],
        store: Store,
        log: ChangeLog,
        backlog: Backlog,
        capture: Callable[[], CaptureThread],
        settings: RunnerSettings,
        source_limit_bytes: int = 0,
        idle: Idle = OWN,
    ) -> None:
        self._turn_seconds = idle.beat
        self._beat_seconds = settings.heartbeat_seconds * idle.heartbeat
        self._open_control = control
        self._control: SourceControl | None = None
        self._store = store
        self._log = log
        self._backlog = backlog
        self._capture = capture
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._sent: tuple[int, float] | None = None
        self._came: deque[tuple[int, float]] = deque()
        self._sent_at = 0.0
        self._status = LogStatus()
        self._status_at: float | None = None
        self._clock_offset = time.time() - time.monotonic()
        self._growth = Growth()
        self._source_limit = source_limit_bytes
        self._source_growth = Growth()
        self.known_until: float | None = None
        self.marks: tuple[tuple[int, float], ...] = ()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, and write the last metrics."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._control is not None:
            self._control.close()

    def now(self) -> float:
        """The source's clock, in seconds since the epoch. Ours may be set meanwhile."""
        return time.monotonic() + self._clock_offset

    def _run(self) -> None:
        while not self._stop.wait(self._turn_seconds):
            try:
                self._beat()
            except ReplicationError as err:
                logger.warning("Heartbeat: %s", err.message.text)
                self._reset()
            except Exception:
                logger.exception("Heartbeat failed.")
                self._reset()
            try:
                self._write()
            except Exception:
                logger.exception("Metrics could not be written.")

    def _reset(self) -> None:
        control, self._control = self._control, None
        self._sent = None
        if control is not None:
            try:
                control.close()
            except Exception:
                logger.debug("Closing the control connection failed.", exc_info=True)

    def _beat(self) -> None:
        self._settle()
        if time.monotonic() - self._sent_at < self._beat_seconds:
            return
        if self._control is None:
            self._control = self._open_control()
        self._status = self._control.status(self._capture().position)
        self._status_at = time.time()
        self._source_growth.measure(time.monotonic(), self._status.retained_bytes)
        self._clock_offset = self._status.server_time - time.monotonic()
        if self._sent is None:
            at = self.now()
            self._sent = (self._control.heartbeat(), at)
        self._sent_at = time.monotonic()

    def _settle(self) -> None:
        """Check whether the heartbeat has come back through capture, and then through decoding."""
        position = self._capture().position
        if self._sent is not None and position is not None and position.ordinal >= self._sent[0]:
            newest = self._backlog.undecoded(1_000_000)
            last = newest[-1].number if newest else self._backlog.frontier.segment
            self._came.append((last, self._sent[1]))
            self._sent = None
        while self._came and self._backlog.frontier.segment >= self._came[0][0]:
            segment, at = self._came.popleft()
            self.known_until = max(at, self.known_until or 0.0)
            self.marks = (*self.marks[-MARKS_KEPT:], (segment, self.known_until))

    def lag(self, table: TableId) -> tuple[float | None, float | None]:
        """Lag in seconds, and the time since when something is unmerged. Both are None while
        nothing is known."""
        oldest = self._backlog.oldest(table)
        if oldest is not None:
            return max(0.0, self.now() - oldest), oldest
        if self.known_until is None:
            return None, None
        quiet = self.now() - self.known_until
        is_fresh = quiet <= 2 * self._beat_seconds + 5
        return (0.0 if is_fresh else quiet), self.known_until

    def _write(self) -> None:
        """Write the metrics. A failing table without listed changes is not level: its missing
        changes may have been dropped. Its lag is not known."""
        metrics: dict[TableId, TableMetrics] = {}
        for row in self._store.tables():
            is_held = row.state is TableState.FAILING and self._backlog.oldest(row.id) is None
            states = {TableState.REPLICATING, TableState.FAILING}
            if row.state in states and row.is_snapshot_done and not is_held:
                lag, since = self.lag(row.id)
            else:
                lag, since = None, None
            metrics[row.id] = TableMetrics(lag, since, self._backlog.size_bytes(row.id))
        self._store.record_metrics(metrics, self.facts())

    @property
    def hours_left(self) -> float | None:
        """For how many hours the source keeps what we have not read, or until it keeps as much as
        it may for us; None where it is not known, or has no limit."""
        known = [self._status.hours_left]
        if self._source_limit:
            known.append(self._source_growth.hours_until(self._source_limit))
        return min((h for h in known if h is not None), default=None)

    def facts(self) -> dict[str, Any]:
        """What the page shows of the source's log and of ours. `source_at`: when the source last
        answered."""
        capture = self._capture()
        size, limit = self._log.size_bytes, self._settings.log_limit_bytes
        self._growth.measure(time.monotonic(), size)
        return {
            "log_bytes": size,
            "log_limit_bytes": limit,
            "log_hours_left": self._growth.hours_until(limit),
            "retained_bytes": self._status.retained_bytes,
            "is_slot_active": self._status.is_active,
            "hours_left": self.hours_left,
            "is_log_limited": self._status.is_limited or self.hours_left is not None,
            "source_bytes_per_second": self._status.bytes_per_second,
            "source_at": self._status_at,
            "is_backpressure": capture.is_waiting_for_space,
            "is_source_closed": capture.is_source_closed,
            "segments_waiting": self._backlog.waiting,
            "captured_position": capture.position.ordinal if capture.position else None,
            "messages": capture.messages,
            "next_delivery_at": capture.next_at,
        }
