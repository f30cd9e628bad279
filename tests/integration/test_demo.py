"""The demo as a person meets it: one command, one parent, everything stopped with it. In a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from demo.parent import Parent
from demo.place import ROOT, Place
from demo.processes import marked

UP_SECONDS = 150.0
pytestmark = [pytest.mark.integration, pytest.mark.timeout(500)]


def until(holds: Callable[[], Any], what: str, seconds: float = UP_SECONDS) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, f"not in {seconds:.0f} s: {what}"
        time.sleep(0.1)
    return found


class Demo:
    """`python -m demo` in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder)
        self.log = folder.with_suffix(".log")
        self.parent: subprocess.Popen[bytes] | None = None

    def command(self, *options: str) -> list[str]:
        folder = ["--folder", str(self.place.folder), "--orders", "300"]
        return [sys.executable, "-m", "demo", *folder, *options]

    def start(self, *options: str) -> dict[str, Any]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("REPLICATOR_DEMO")}
        with self.log.open("wb") as log:
            self.parent = subprocess.Popen(
                self.command(*options),
                cwd=ROOT,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        until(self._is_told, "the demo is up")
        return self.place.read(self.place.result)

    def _is_told(self) -> bool:
        assert self.parent is not None
        said = self.log.read_text()
        assert self.parent.poll() is None, said
        return "Ctrl-C stops everything" in said

    def end(self, number: int) -> int:
        assert self.parent is not None
        self.parent.send_signal(number)
        return self.parent.wait(60)

    def left(self) -> set[int]:
        recorded = self.place.folder / "postgres.folder"
        home = Path(recorded.read_text()) if recorded.exists() else self.place.folder / "postgres"
        found = {process.pid for process in marked(self.place.folder)}
        pid_file = home / "data" / "postmaster.pid"
        return found | ({int(pid_file.read_text().split()[0])} if pid_file.exists() else set())


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    made = Demo(tmp_path / "run")
    yield made
    if made.parent is not None and made.parent.poll() is None:
        made.end(signal.SIGTERM)
    Parent(made.place).forget()


def orders(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT sum(n_tup_ins) FROM pg_stat_user_tables").fetchone()
    return int(row[0]) if row else 0


def test_it_starts_answers_and_ends_with_nothing_left_and_resumes_after_kill_9(demo: Demo) -> None:
    first = demo.start()
    mode = demo.place.result.stat().st_mode
    assert mode & 0o777 == 0o600
    assert urllib.request.urlopen(first["url"], timeout=10).status == 200
    before = orders(first["source"]["dsn"])
    until(lambda: orders(first["source"]["dsn"]) > before, "traffic", 30)

    second = subprocess.run(demo.command(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 0
    assert first["url"] in second.stdout

    assert demo.end(signal.SIGKILL) == -signal.SIGKILL
    assert demo.left()
    again = demo.start()
    assert "left behind" in demo.log.read_text()
    assert {k: again[k] for k in ("password", "token", "replicator_id", "target")} == {
        k: first[k] for k in ("password", "token", "replicator_id", "target")
    }

    assert demo.end(signal.SIGTERM) == 0
    assert not demo.left()


def test_a_part_that_dies_is_started_again(demo: Demo) -> None:
    told = demo.start()
    noted = json.loads(demo.place.processes.read_text())["processes"]
    for pid, _ in noted:
        os.kill(pid, signal.SIGKILL)
    home = Path((demo.place.folder / "postgres.folder").read_text()) if os.geteuid() == 0 else None
    pid_file = (home or demo.place.folder / "postgres") / "data" / "postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

    def works() -> bool:
        try:
            before = orders(told["source"]["dsn"])
            web = urllib.request.urlopen(told["url"], timeout=5).status == 200
        except (OSError, psycopg.Error):
            return False
        return web and until(lambda: orders(told["source"]["dsn"]) > before, "traffic", 30)

    until(works, "everything works again", 60)
    assert demo.end(signal.SIGINT) == 0
    assert not demo.left()
