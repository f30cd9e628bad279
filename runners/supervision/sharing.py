"""Has the machine's shared Spark started, and started again where it ended."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from replicators.private import opened_privately
from runners.engine.tasks.sharing import ways

logger = logging.getLogger(__name__)

FIRST_SECONDS, LAST_SECONDS = 2.0, 60.0
QUIET_SECONDS = 300.0
LOG_BYTES = 16 << 20


def _spawn(folder: Path) -> subprocess.Popen[bytes]:
    """Start the keeper in a session of its own: it outlives this worker, as runs do."""
    log = folder / ways.LOG
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".1.log"))
    with open(log, "ab", opener=opened_privately) as output:
        return subprocess.Popen(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "share_spark"],
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class SharedSpark:
    """Starts the keeper where there is none. After an end it waits, twice as long each time, up to
    a minute; five minutes without an end reset that. Thread safe."""

    def __init__(
        self,
        spawn: Callable[[Path], subprocess.Popen[bytes]] = _spawn,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spawn = spawn
        self._clock = clock
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._began = self._due = float("-inf")
        self._wait = FIRST_SECONDS

    def keep(self) -> None:
        """Called again and again while a run needs it. An error is logged, and tried again."""
        with self._lock:
            try:
                self._keep(self._clock())
            except OSError:
                logger.exception("The shared Spark could not be started.")

    def _keep(self, now: float) -> None:
        if self._child is not None:
            if self._child.poll() is None:
                return
            self._note_end(self._child.returncode, now)
        folder = ways.place_of(settings.RUNNER.spark_shared_dir)
        if now < self._due or ways.has_keeper(folder):
            return
        self._began, self._child = now, self._spawn(folder)
        logger.info("The shared Spark starts, process %s.", self._child.pid)

    def _note_end(self, code: int, now: float) -> None:
        self._child = None
        if code == 0 or now - self._began > QUIET_SECONDS:
            self._wait = FIRST_SECONDS
        if code:
            logger.warning("The shared Spark ended with %s; it is started again.", code)
            self._due, self._wait = now + self._wait, min(LAST_SECONDS, self._wait * 2)


SHARED = SharedSpark()
