"""Operating-system processes of runs: start them, recognise them again, end them with all their
descendants."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import psutil

from replicators.private import opened_privately, private_folder

HOSTNAME = socket.gethostname()[:120]
LEASE = "REPLICATOR_RUN_LEASE"


def started_at(pid: int) -> float | None:
    """When a process started, in seconds since the machine's start. With the pid it names a process
    for ever.

    A clock that is set moves `create_time` and `boot_time` alike, so their difference stays. The
    clock may be set between the two reads; then they are read again.
    """
    with contextlib.suppress(psutil.Error):
        boot = psutil.boot_time()
        while True:
            created, before, boot = psutil.Process(pid).create_time(), boot, psutil.boot_time()
            if before == boot:
                return round(created - boot, 2)
    return None


def is_alive(pid: int, start: float | None) -> bool:
    """Whether that same process still runs. A zombie does not."""
    with contextlib.suppress(psutil.Error):
        if psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return start is None or started_at(pid) == start
    return False


def session_members(session: int) -> list[int]:
    """The living processes of a session: the run, its JVM and its Python workers."""
    return [pid for pid in psutil.pids() if _session(pid) == session and is_alive(pid, None)]


def _session(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_session(session: int, *, within_seconds: float = 10.0) -> bool:
    """SIGKILL everything in a session, again and again until nothing is left. Returns whether
    nothing is."""
    until = time.monotonic() + within_seconds
    while members := session_members(session):
        signal_all(members, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


class Process(Protocol):
    """A run's process as the supervisor sees it. `poll` gives an exit code, None while it lives;
    `UNKNOWN` where it ended and nobody knows how."""

    pid: int

    def poll(self) -> int | None: ...

    def terminate(self) -> None: ...

    def end(self) -> bool: ...


UNKNOWN = -1000
Spawn = Callable[[str, str], Process]


class Spawned:
    """A child of this process."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.pid = child.pid

    def poll(self) -> int | None:
        return self._child.poll()

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._child.terminate()

    def end(self) -> bool:
        """Kill what is left of the process and its descendants. Returns whether nothing is left."""
        if self._child.poll() is None:
            self._child.kill()
        done = end_session(self.pid)
        self._child.poll()
        return done


class Adopted:
    """A process that an earlier supervisor started."""

    def __init__(self, pid: int, start: float | None) -> None:
        self.pid = pid
        self._start = start

    def poll(self) -> int | None:
        return None if is_alive(self.pid, self._start) else UNKNOWN

    def terminate(self) -> None:
        if self.poll() is None:
            signal_all([self.pid], signal.SIGTERM)

    def end(self) -> bool:
        """Kill what is left of the process. A session of another process that got the same pid is
        not touched."""
        now = started_at(self.pid)
        if now is not None and self._start is not None and now != self._start:
            return True
        return end_session(self.pid)


class Elsewhere:
    """A process that can't be seen from here (another machine, or one whose pid was never
    recorded)."""

    pid = 0

    def poll(self) -> int | None:
        return None

    def terminate(self) -> None:
        """No signal can be sent there: the process sees only the stop flag in its row."""

    def end(self) -> bool:
        return True


def spawn_command(base: Path, logs: Path, program: tuple[str, ...] = ()) -> Spawn:
    """A `Spawn` that starts `manage.py run_replicator` in its own session, with its output in a
    file of `logs`. The lease is passed in the environment: every user of the machine can read
    arguments."""
    command = program or (sys.executable, str(base / "manage.py"), "run_replicator")

    def spawn(run_id: str, lease: str) -> Process:
        private_folder(logs)
        with open(logs / f"{run_id}.log", "ab", opener=opened_privately) as output:
            child = subprocess.Popen(
                [*command, run_id],
                cwd=base,
                env={**os.environ, LEASE: lease},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Spawned(child)

    return spawn
