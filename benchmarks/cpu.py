"""Where CPU time goes: by part of the program, and the server beside it. Knows no line."""

from __future__ import annotations

import contextlib

import psutil

PARTS = ("server", "driver", "JVM", "workers")
SERVERS = ("mysqld", "mariadbd", "postgres")


class Cpu:
    """CPU seconds that this process and its descendants spend from now on."""

    def __init__(self) -> None:
        self._before = _seconds()

    def said(self) -> str:
        """For a note: `server 0.5, driver 0.4, JVM 0.3, workers 1.0`."""
        now = _seconds()
        parts = dict.fromkeys(PARTS, 0.0)
        for (pid, part), seconds in now.items():
            parts[part] += seconds - self._before.get((pid, part), 0.0)
        return ", ".join(f"{part} {seconds:.1f}" for part, seconds in parts.items())


def _seconds() -> dict[tuple[int, str], float]:
    root = psutil.Process()
    found = {}
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            part = "driver" if process == root else _part(process)
            found[process.pid, part] = times.user + times.system
    return found


def _part(process: psutil.Process) -> str:
    if process.name().startswith("java"):
        return "JVM"
    command = " ".join(process.cmdline()[:6])
    return "server" if any(name in command for name in SERVERS) else "workers"
