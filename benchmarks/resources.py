"""What a process and its descendants use, by part: CPU seconds, and memory at its peak. Knows no line."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import psutil

GIB = 2**30
PARTS = ("server", "driver", "JVM", "workers", "peer")
SERVERS = ("mysqld", "mariadbd", "postgres")
PEERS = "var/peers"


class Cpu:
    """CPU seconds that this process and its descendants spend from now on."""

    def __init__(self) -> None:
        self._before = _seconds()

    def said(self) -> str:
        """For a note: `server 0.5, driver 0.4, JVM 0.3, workers 1.0`."""
        parts = dict.fromkeys(PARTS, 0.0)
        for (pid, part), seconds in _seconds().items():
            parts[part] += seconds - self._before.get((pid, part), 0.0)
        return ", ".join(f"{part} {seconds:.1f}" for part, seconds in parts.items() if seconds)


class Memory(threading.Thread):
    """Samples the memory of a process and its descendants; what they share counts once (PSS)."""

    def __init__(self, pid: int, every: float = 0.5) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._every = every
        self._over = threading.Event()
        self.peak = 0
        self.parts: dict[str, int] = {}

    def run(self) -> None:
        """Sample until closed."""
        while not self._over.wait(self._every):
            parts = self._sample()
            if sum(parts.values()) > self.peak:
                self.peak, self.parts = sum(parts.values()), parts

    def _sample(self) -> dict[str, int]:
        parts = dict.fromkeys(PARTS, 0)
        for process, part in _processes(self._root):
            with contextlib.suppress(psutil.Error):
                parts[part] += process.memory_full_info().pss
        return parts

    def said(self) -> str:
        """For a note: `1.80 GiB (driver 0.20, JVM 0.81, workers 0.79)`."""
        shown = ", ".join(f"{p} {size / GIB:.2f}" for p, size in self.parts.items() if size)
        return f"{self.peak / GIB:.2f} GiB ({shown})"

    def close(self) -> None:
        """End sampling."""
        self._over.set()
        self.join()


def _seconds() -> dict[tuple[int, str], float]:
    found = {}
    for process, part in _processes(psutil.Process()):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid, part] = times.user + times.system
    return found


def _processes(root: psutil.Process) -> Iterator[tuple[psutil.Process, str]]:
    yield root, "driver"
    with contextlib.suppress(psutil.Error):
        for process in root.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                yield process, _part(process)


def _part(process: psutil.Process) -> str:
    command = " ".join(process.cmdline()[:6])
    if PEERS in command:
        return "peer"
    if any(name in command for name in SERVERS):
        return "server"
    return "JVM" if process.name().startswith("java") else "workers"
