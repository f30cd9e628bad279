"""Keeps the lease while every step is within its deadline, and ends this process where the lease
can't be kept (CORRECTNESS 29)."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from replicators.connectors.problems.errors import ReplicationError
from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import Store

logger = logging.getLogger("replicator.watchdog")

RENEW_SECONDS = 5.0
AGAIN_SECONDS = 1.0
ROWS_A_SECOND = 10_000
"""For a step that handles all rows of a table at once: a tenth of the slowest speed that was
measured."""


def kill_own_group() -> None:
    """SIGKILL the own process group: nothing of a run outlives its lease."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


class Watchdog:
    """A thread renews the lease again and again. Another thread ends the process at the lease's
    end, also while the first one waits for an answer. The lease in the database follows `clock`,
    which people may set. How long the lease is still ours follows `timer`, which never goes
    back."""

    def __init__(
        self,
        store: Store,
        settings: RunnerSettings,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
        kill: Callable[[], None] = kill_own_group,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._timer = timer
        self._kill = kill
        self._deadlines: dict[int, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._next = 0
        self._renewed_at = timer()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._guard = threading.Thread(target=self._run_guard, name="lease", daemon=True)
        self._pause = self._interval = min(settings.lease_seconds / 6, RENEW_SECONDS)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()
        self._guard.start()

    def close(self) -> None:
        """End watching."""
        self._stop.set()
        for thread in (self._thread, self._guard):
            if thread.is_alive():
                thread.join()

    @contextmanager
    def step(self, name: str, seconds: float | None = None) -> Iterator[None]:
        """A step that must end within `seconds` (default: the setting), by the monotonic clock."""
        limit = time.monotonic() + (seconds or self._settings.step_deadline_seconds)
        with self._lock:
            self._next += 1
            number = self._next
            self._deadlines[number] = (name, limit)
        try:
            yield
        finally:
            with self._lock:
                del self._deadlines[number]

    def extend(self, name: str, rows: int = 0) -> None:
        """The step of this name made progress: its deadline starts again, and is longer where the
        next part handles very many rows."""
        seconds = max(self._settings.step_deadline_seconds, rows / ROWS_A_SECOND)
        limit = time.monotonic() + seconds
        with self._lock:
            for number, (known, _) in self._deadlines.items():
                if known == name:
                    self._deadlines[number] = (name, limit)

    def overdue(self) -> str | None:
        """The name of a step that is past its deadline."""
        now = time.monotonic()
        with self._lock:
            return next((name for name, limit in self._deadlines.values() if now > limit), None)

    def turn(self) -> None:
        """Check once: renew the lease, or end the process."""
        late = self.overdue()
        if late is not None:
            logger.critical("Step %s is past its deadline; ending this run.", late)
            self._kill()
            return
        if self.guard():
            return
        lease, begun = self._settings.lease_seconds, self._timer()
        try:
            self._store.renew(self._clock() + lease)
            self._renewed_at, self._pause = begun, self._interval
        except Exception as err:
            self._pause = min(self._interval, AGAIN_SECONDS)
            logger.exception("The lease could not be renewed.")
            is_another = isinstance(err, ReplicationError) and err.code == "run:lease-lost"
            if is_another or self._timer() > self._renewed_at + lease * 2 / 3:
                self._kill()

    def guard(self) -> bool:
        """End the process if its lease is over, without asking anybody. Returns whether it is
        over."""
        if self._timer() <= self._renewed_at + self._settings.lease_seconds:
            return False
        logger.critical("This process was held up for longer than its lease; ending this run.")
        self._kill()
        return True

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self.turn()

    def _run_guard(self) -> None:
        while not self._stop.wait(self._interval / 5):
            self.guard()
