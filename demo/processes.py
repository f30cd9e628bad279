"""Child processes of the demo's parent. It starts them, watches them, stops them in order, and
finds them again after a crash of the parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from runners.engine.processes import is_alive, signal_all, started_at

PR_SET_CHILD_SUBREAPER = 36
MARK = "REPLICATOR_DEMO_FOLDER"


def become_subreaper() -> None:
    """Adopt orphaned grandchildren (runs whose worker died), so that we can stop them."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies one process for certain. A pid alone may belong to another process by now."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The process that has this pid now; None if there is none, or only a zombie."""
        started = started_at(pid)
        known = None if started is None else cls(pid, started)
        return known if known and known.is_alive() else None

    def is_alive(self) -> bool:
        """Whether exactly this process still lives."""
        return is_alive(self.pid, self.started)

    def send(self, number: signal.Signals) -> None:
        """Send the signal if this is still the same process."""
        if self.is_alive():
            signal_all([self.pid], number)


def descendants(roots: Iterable[int]) -> set[Identity]:
    """All living processes below these pids, without these pids themselves."""
    above = set(roots)
    found: set[int] = set()
    for pid in above:
        with contextlib.suppress(psutil.Error):
            found |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
    return {known for pid in found - above if (known := Identity.of(pid))}


def marked(folder: Path) -> set[Identity]:
    """All processes whose environment names this demo's folder, without ourselves and our
    ancestors."""
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid not in own and process.environ().get(MARK) == str(folder):
                known = Identity.of(process.pid)
                found |= {known} if known else set()
    return found


def stop_all(find: Callable[[], set[Identity]], seconds: float) -> None:
    """Send SIGTERM, and when the time is over SIGKILL, until `find` finds nothing twice in a row.

    `find` is called again and again, since a process that is being stopped may just have started
    another: a worker starts a run, a run starts its JVM. One empty result is not enough. A process
    may start after the list was made and before its parent is looked at. It is then on no list, and
    its parent is gone.
    """
    end = time.monotonic() + seconds
    asked: set[Identity] = set()
    before: set[Identity] | None = None

    def is_done() -> bool:
        nonlocal before
        was_done, left = before == set(), find()
        before = left
        is_over = time.monotonic() > end
        for process in left if is_over else left - asked:
            process.send(signal.SIGKILL if is_over else signal.SIGTERM)
        asked.update(left)
        return was_done and not left

    wait_until(is_done, seconds + 5.0)


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until `holds` returns True or the time is over. `reap` collects orphans that end
    meanwhile."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@dataclass
class Service:
    """One long-running child with its log. The parent starts it again when it dies."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    cwd: Path
    log: Path
    ready: Callable[[], bool]
    ready_seconds: float = 90.0
    process: subprocess.Popen[bytes] | None = None
    deaths: list[float] = field(default_factory=list)

    def spawn(self) -> None:
        """Start the child in its own session: a Ctrl-C in the terminal reaches the parent only."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(self.command),
                cwd=self.cwd,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """Whether the child lives."""
        return self.process is not None and self.process.poll() is None

    def wait_ready(self) -> bool:
        """Wait until the child is ready. Returns False if it died or took too long."""
        wait_until(lambda: not self.is_running or self.ready(), self.ready_seconds)
        return self.is_running and self.ready()

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self.process is not None and self.is_running:
            self.process.terminate()

    def log_tail(self) -> str:
        """The last lines of its log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        return ""


def reap(ours: Iterable[int]) -> None:
    """Collect ended orphans that we adopted. The pids in `ours` are left to their Popen."""
    own = set(ours)
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, 0)
