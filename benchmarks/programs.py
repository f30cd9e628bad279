"""The programs that serve as peers: where they are installed, and what a run of one needs."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from demo.postgres import PostgresError, wheel_binaries
from setup.machine import MYSQL_ROOT, mysql_root

GIB = 2**30
LOOK_SECONDS = 0.01
LOG_END = 300
LIMIT_SECONDS = 300.0
"""Limit of a peer's run: four peers that hang still leave time for the line's other
measurements."""


def postgresql(name: str) -> str:
    """A program of the PostgreSQL that set-up installed."""
    try:
        return str(wheel_binaries() / name)
    except PostgresError:
        return name


def mysql(path: str) -> list[str]:
    """A program of the MySQL that set-up unpacked, with the libraries beside it; never another
    program of that name."""
    root = mysql_root() or Path(MYSQL_ROOT)
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return [
        str(libraries / "ld-linux-x86-64.so.2"), "--library-path",
        f"{libraries}:{root}/usr/lib/mysql/private",
        str(root / path),
    ]  # fmt: skip


def high_water(pid: int) -> int:
    """The peak memory of a process so far, in bytes; 0 where the process has ended. Not
    `ru_maxrss`: that includes the memory of the process before it became this program."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


@dataclass(frozen=True, slots=True)
class Ran:
    """Time and memory that a run of a program needed."""

    seconds: float
    memory_gib: float


def end(
    process: subprocess.Popen[Any], grace_seconds: float = 0.0, *, is_told: bool = False
) -> None:
    """End a process with all that it started. With a grace it first gets a signal (unless it
    `is_told` already), and that much time to remove what it made."""
    below: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(process.pid).children(recursive=True)
    try:
        if grace_seconds:
            if not is_told:
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_seconds)
    finally:
        with contextlib.suppress(psutil.Error):
            below += psutil.Process(process.pid).children(recursive=True)
        for child in below:
            with contextlib.suppress(psutil.Error):
                child.kill()
        process.kill()
        process.wait()


def run(
    name: str,
    command: Sequence[str],
    log: Path,
    limit_seconds: float = LIMIT_SECONDS,
    **options: Any,
) -> Ran:
    """Run a program to its end, with its output in `log`. Raises RuntimeError with the end of the
    log where the program fails or takes too long."""
    over, peak = threading.Event(), [0]

    def look(pid: int) -> None:
        while True:
            peak[0] = max(peak[0], high_water(pid))
            if over.wait(LOOK_SECONDS):
                return

    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **options}
    began = time.monotonic()
    with (
        log.open("wb") as errors,
        subprocess.Popen(list(command), stderr=errors, **options) as child,
    ):
        looking = threading.Thread(target=look, args=(child.pid,))
        looking.start()
        code = None
        try:
            code = child.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            end(child)
        finally:
            seconds = time.monotonic() - began
            over.set()
            looking.join()
    if code is None:
        raise RuntimeError(f"{name} took longer than {limit_seconds:.0f} s")
    if code:
        said = log.read_text(errors="replace").strip()[-LOG_END:]
        raise RuntimeError(f"{name} ended with {code}: {said}")
    return Ran(seconds, round(peak[0] / GIB, 3))
