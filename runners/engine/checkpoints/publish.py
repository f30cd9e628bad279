"""Publishes watermarks for the target's own readers: a row in its progress table, now and then,
from its own thread. Nobody waits for it, and its faults stop nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from replicators.connectors.model.watermarks import Watermark
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import Watermarked
from runners.engine.idle import OWN, Idle

logger = logging.getLogger("replicator.rounds")


class Publisher:
    """Writes at most one row in `seconds` (0: never). A watermark that comes while a row is being
    written, or too early, is not written to the target. Rows that name the same versions are
    further apart, since each is a statement and a commit of the target."""

    def __init__(
        self,
        writer: Watermarked,
        replicator: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        idle: Idle = OWN,
    ) -> None:
        self._writer = writer
        self._replicator = replicator
        self._seconds = seconds * idle.row
        self._same_seconds = seconds * idle.same_row
        self._clock = clock
        self._reported_at: float | None = None
        self._reported: Watermark | None = None
        self._code = ""
        self._job: Future[None] | None = None
        self._pool = ThreadPoolExecutor(1, "watermark")

    def offer(self, mark: Watermark) -> None:
        """A watermark was published."""
        is_busy = self._job is not None and not self._job.done()
        now = self._clock()
        least = self._same_seconds if self._is_same(mark) else self._seconds
        is_early = self._reported_at is not None and now - self._reported_at < least
        if self._seconds <= 0 or is_busy or is_early:
            return
        self._reported_at, self._reported = now, mark
        self._job = self._pool.submit(self._write, mark)

    def _is_same(self, mark: Watermark) -> bool:
        """Whether the last row named the same versions. Where it was not written, it named none."""
        last = self._reported
        return (
            last is not None
            and not self._code
            and (last.versions, last.left_out) == (mark.versions, mark.left_out)
        )

    def close(self) -> None:
        """Wait for the row that is being written."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _write(self, mark: Watermark) -> None:
        try:
            self._writer.publish_watermark(self._replicator, mark)
        except ReplicationError as err:
            code = err.code
            level = logging.DEBUG if code == self._code else logging.WARNING
            logger.log(level, "A watermark was not written into the target: %s", err)
        except Exception:
            code = "internal:unexpected"
            logger.exception("A watermark was not written into the target.")
        else:
            code = ""
        self._code = code
