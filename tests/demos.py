"""The demo in a folder of a test's own: every part real, from web and workers to PostgreSQL and
Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from demo.parent import Parent
from demo.place import ROOT, Place
from demo.processes import Identity, marked

UP_SECONDS = 150.0


def until(
    holds: Callable[[], Any], what: str | Callable[[], str], seconds: float = UP_SECONDS
) -> Any:
    """Poll until `holds` is true and return what it gave; fails with `what` at the deadline."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            raise AssertionError(
                f"not in {seconds:.0f} s: {what if isinstance(what, str) else what()}"
            )
        time.sleep(0.1)
    return found


class Demo:
    """`python -m demo` in `folder`, by this `python`; `environment` goes to all of its
    processes."""

    def __init__(
        self, folder: Path, *, orders: int = 300, python: str = sys.executable, **environment: str
    ) -> None:
        self.place = Place(folder)
        self.log = folder.with_suffix(".log")
        self.parent: subprocess.Popen[bytes] | None = None
        self._orders = orders
        self._python = python
        self._environment = environment

    def command(self, *options: str) -> list[str]:
        """Its command line."""
        folder = ["--folder", str(self.place.folder), "--orders", str(self._orders)]
        return [self._python, "-m", "demo", *folder, *options]

    def start(self, *options: str) -> dict[str, Any]:
        """Start it and wait until it answers: what `demo.json` says."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("REPLICATOR_DEMO")}
        with self.log.open("wb") as log:
            self.parent = subprocess.Popen(
                self.command(*options),
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env=kept | self._environment,
                start_new_session=True,
            )
        until(self._is_reported, "the demo is up")
        return self.place.read(self.place.result)

    def _is_reported(self) -> bool:
        assert self.parent is not None
        said = self.log.read_text()
        assert self.parent.poll() is None, said
        return "Ctrl-C stops everything" in said

    def end(self, number: int) -> int:
        """Signal it; its exit code."""
        assert self.parent is not None
        self.parent.send_signal(number)
        return self.parent.wait(120)

    def left(self) -> set[int]:
        """Processes that still are there."""
        recorded = self.place.folder / "postgres.folder"
        home = Path(recorded.read_text()) if recorded.exists() else self.place.folder / "postgres"
        found = {process.pid for process in marked(self.place.folder)}
        pid_file = home / "data" / "postmaster.pid"
        return found | ({int(pid_file.read_text().split()[0])} if pid_file.exists() else set())

    def close(self) -> None:
        """Stop it and remove what it made."""
        if self.parent is not None and self.parent.poll() is None:
            self.end(signal.SIGTERM)
        Parent(self.place).forget()


@contextmanager
def closed_demo(folder: Path, **options: Any) -> Iterator[Demo]:
    """A demo that is stopped and removed at the end."""
    made = Demo(folder, **options)
    try:
        yield made
    finally:
        made.close()


PARTS = {
    "beat": ("celery", " beat "),
    "broker": ("valkey-server",),
    "worker-runs": ("celery", "-Q runs"),
    "worker-default": ("celery", "-Q default"),
    "run": ("run_replicator",),
    "traffic": ("demo.traffic",),
}


def pids(demo: Demo, part: str) -> list[int]:
    """The processes of a part of this demo, oldest first."""
    found = []
    noted = {Identity(*one) for one in demo.place.read(demo.place.processes)["processes"]}
    alive = {p for p in noted if p.is_alive()} | marked(demo.place.folder)
    for process in sorted(alive, key=lambda p: (p.started, p.pid)):
        with suppress(psutil.Error):
            command = " ".join(psutil.Process(process.pid).cmdline()) + " "
            if all(word in command for word in PARTS[part]):
                found.append(process.pid)
    return found
