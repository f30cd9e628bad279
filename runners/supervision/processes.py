"""Operating-system processes of runs: start, recognise again, end with all their descendants. Reads Linux's /proc."""

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

from replicators.private import opened_privately, private_folder

_TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
HOSTNAME = socket.gethostname()[:120]
LEASE = "REPLICATOR_RUN_LEASE"


def _stat(pid: int) -> list[str] | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def started_at(pid: int) -> float | None:
    """When a process started, in seconds since the machine's start; with the pid it names a process for ever."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19]) / _TICKS


def is_alive(pid: int, start: float | None) -> bool:
    """Whether that very process still runs; a zombie doesn't."""
    fields = _stat(pid)
    return (
        fields is not None
        and fields[0] not in "ZX"
        and (start is None or int(fields[19]) / _TICKS == start)
    )


def session_members(session: int) -> list[int]:
    """The living processes of a session: the run, its JVM and its Python workers."""
    found = []
    for entry in PROC.iterdir():
        fields = _stat(int(entry.name)) if entry.name.isdigit() else None
        if fields is not None and int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_session(session: int, *, within_seconds: float = 10.0) -> bool:
    """SIGKILL everything in a session, again until nothing is left; whether nothing is."""
    until = time.monotonic() + within_seconds
    while members := session_members(session):
        signal_all(members, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


class Process(Protocol):
    """A run's process as the supervisor sees it. `poll` gives an exit code, None while it lives; `UNKNOWN` where it ended
    and nobody knows how."""

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
        """Kill what is left of it and its descendants; whether nothing is."""
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
        """Kill what is left of it; a session of another process that got the same pid is not touched."""
        now = started_at(self.pid)
        if now is not None and self._start is not None and now != self._start:
            return True
        return end_session(self.pid)


class Elsewhere:
    """A process that can't be seen from here (another machine, or one whose pid was never recorded)."""

    pid = 0

    def poll(self) -> int | None:
        return None

    def terminate(self) -> None:
        """Nothing can be sent there; the stop flag in its row is all it sees."""

    def end(self) -> bool:
        return True


def spawn_command(base: Path, logs: Path, program: tuple[str, ...] = ()) -> Spawn:
    """A `Spawn` that starts `manage.py run_replicator` in a session of its own, with its output in a file of `logs`. The lease comes by
    the environment: every user of the machine can read arguments."""
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
