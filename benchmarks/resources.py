"""Resources that a process and its descendants use, by part: CPU seconds and peak memory. Knows no
line."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import pyarrow as pa

GIB = 2**30
PARTS = ("server", "emulator", "driver", "JVM", "workers", "peer")
SERVERS = ("mysqld", "mariadbd", "postgres")
PEERS = "var/peers"
EMULATORS = ("bqemulator", "fakesnow", "benchmarks.played", "moto.server", "versitygw")
NOT_OURS = frozenset({"server", "emulator", "peer"})
OURS = "ours"
_watching: list[Memory] = []


class Cpu:
    """Counts the CPU seconds of this process and its descendants from now on."""

    def __init__(self) -> None:
        self._before = _seconds()
        self._began = time.monotonic()

    def share(self) -> float:
        """The share of the machine's cores used: 1.0 is all of them, all the time."""
        spent = sum(self._spent().values())
        return spent / (time.monotonic() - self._began) / (psutil.cpu_count() or 1)

    def said(self) -> str:
        """Text for a note: `server 0.5, driver 0.4, JVM 0.3, workers 1.0`."""
        parts = self._spent()
        return ", ".join(f"{part} {seconds:.1f}" for part, seconds in parts.items() if seconds)

    def _spent(self) -> dict[str, float]:
        """The seconds of each part. A process that ended counts with the one that started it."""
        parts = dict.fromkeys(PARTS, 0.0)
        for (_, part), seconds in _seconds().items():
            parts[part] += seconds
        for (_, part), seconds in self._before.items():
            parts[part] -= seconds
        return {part: max(0.0, seconds) for part, seconds in parts.items()}


@dataclass(frozen=True, slots=True)
class Turn:
    """The side whose turn it is, and the process that counts for it, with its descendants."""

    side: str
    root: int


class Memory(threading.Thread):
    """Samples the memory of a process and its descendants; shared memory counts once (PSS). During
    a side's `turn`, the processes below that turn's process count for that side too, without
    servers and peers."""

    def __init__(self, pid: int, every: float = 0.5) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._every = every
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.peak = 0
        self.parts: dict[str, int] = {}
        self.turn: Turn | None = None
        self.sides: dict[str, int] = {}
        self.is_paused = False

    def run(self) -> None:
        """Sample until closed."""
        while not self._over.wait(self._every):
            if not self.is_paused:
                self.sample()

    def sample(self) -> None:
        """Take one sample."""
        with self._lock:
            turn, parts = self.turn, dict.fromkeys(PARTS, 0)
            sizes: dict[int, int] = {}
            for process, part in _processes(self._root):
                with contextlib.suppress(psutil.Error):
                    size = process.memory_full_info().pss
                    parts[part] += size
                    sizes[process.pid] = size if part not in NOT_OURS else 0
            if sum(parts.values()) > self.peak:
                self.peak, self.parts = sum(parts.values()), parts
            if turn is not None:
                mine = sum(sizes.get(pid, 0) for pid in _below(turn.root))
                self.sides[turn.side] = max(mine, self.sides.get(turn.side, 0))

    def gib(self, side: str = OURS) -> float | None:
        """A side's peak; None where the side was never sampled."""
        return round(self.sides[side] / GIB, 2) if side in self.sides else None

    def said(self) -> str:
        """Text for a note: `1.80 GiB (driver 0.20, JVM 0.81, workers 0.79)`."""
        shown = ", ".join(f"{p} {size / GIB:.2f}" for p, size in self.parts.items() if size)
        return f"{self.peak / GIB:.2f} GiB ({shown})"

    def close(self) -> None:
        """End sampling."""
        self._over.set()
        self.join()


@contextmanager
def turn(side: str = OURS, root: int | None = None) -> Iterator[None]:
    """Make it this side's turn until the end; does nothing where no memory is sampled. Memory that
    earlier checks used is released first."""
    pa.default_memory_pool().release_unused()
    watch = _watching[-1] if _watching else None
    if watch is None:
        yield
        return
    before, watch.turn = watch.turn, Turn(side, root or os.getpid())
    try:
        yield
    finally:
        watch.sample()
        watch.turn = before


@contextmanager
def unwatched() -> Iterator[None]:
    """No memory is sampled meanwhile: with a hundred processes a look takes most of a second of
    CPU."""
    for watch in _watching:
        watch.is_paused = True
    try:
        yield
    finally:
        for watch in _watching:
            watch.is_paused = False


def gib_of(side: str) -> float | None:
    """The peak memory of a side that has had its turn."""
    return _watching[-1].gib(side) if _watching else None


@contextmanager
def watched(every: float = 1.0) -> Iterator[Memory]:
    """Sample this process and its descendants; `turn` sets whose turn it is."""
    memory = Memory(os.getpid(), every)
    _watching.append(memory)
    memory.start()
    try:
        yield memory
    finally:
        memory.close()
        _watching.remove(memory)


def _below(root: int) -> set[int]:
    with contextlib.suppress(psutil.Error):
        return {root, *(p.pid for p in psutil.Process(root).children(recursive=True))}
    return set()


def _seconds() -> dict[tuple[int, str], float]:
    found = {}
    for process, part in _processes(psutil.Process()):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid, part] = times.user + times.system
            if part != "driver":  # a server's sessions, Spark's workers that ended
                found[process.pid, part] += times.children_user + times.children_system
    return found


def _processes(root: psutil.Process) -> Iterator[tuple[psutil.Process, str]]:
    yield root, "driver"
    with contextlib.suppress(psutil.Error):
        for process in root.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                yield process, _part(process)


def _part(process: psutil.Process) -> str:
    command = process.cmdline()[:6]
    if PEERS in "".join(command[:1]):
        return "peer"
    if any(name in word for name in EMULATORS for word in command[:3]):
        return "emulator"
    # Match the program's name only: a path such as /home/postgres is no server. A session's process
    # calls itself "postgres: ...".
    if any(word.partition(":")[0].rpartition("/")[2] in SERVERS for word in command):
        return "server"
    return "JVM" if process.name().startswith("java") else "workers"
