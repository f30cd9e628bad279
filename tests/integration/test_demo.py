"""The demo as a person meets it: one command, one parent, everything stopped with it. In a folder
of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from demo.place import ROOT
from tests.demo_kills import kills_lose_and_double_nothing
from tests.demos import Demo, closed_demo, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    with closed_demo(tmp_path / "run") as made:
        yield made


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator[Demo]:
    """A second one, as of another clone."""
    with closed_demo(tmp_path / "other") as made:
        yield made


def orders(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT sum(n_tup_ins) FROM pg_stat_user_tables").fetchone()
    return int(row[0]) if row else 0


def test_it_starts_ends_with_nothing_left_and_bears_kill_9_of_each_part(demo: Demo) -> None:
    """Guards `demo.parent`: one demo a folder (the lock), what a killed parent left is found by its
    mark and stopped (`_clear_leftovers`), login and replicator stay the same (`_seed`), and `stop`
    leaves no process. And `Parent.watch`: fails where a service, the broker or PostgreSQL that died
    stays dead. And the supervision's promise: a run that outlives its supervisor is adopted, never
    started beside itself, and a broker that forgets its queues stops nothing for long."""
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

    a_part_that_dies_is_started_again(demo, again)
    kills_lose_and_double_nothing(demo, again)
    assert demo.end(signal.SIGINT) == 0
    assert not demo.left()


def a_part_that_dies_is_started_again(demo: Demo, reported: dict[str, Any]) -> None:
    """All of them at once: the services, the broker and PostgreSQL."""
    noted = json.loads(demo.place.processes.read_text())["processes"]
    for pid, _ in noted:
        os.kill(pid, signal.SIGKILL)
    home = Path((demo.place.folder / "postgres.folder").read_text()) if os.geteuid() == 0 else None
    pid_file = (home or demo.place.folder / "postgres") / "data" / "postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

    seen: list[int] = []

    def works() -> bool:
        try:
            seen.append(orders(reported["source"]["dsn"]))
            web = urllib.request.urlopen(reported["url"], timeout=5).status == 200
        except (OSError, psycopg.Error):
            return False
        return web and seen[-1] > seen[0]

    until(works, "everything works again")


def answers(reported: dict[str, Any]) -> bool:
    return bool(urllib.request.urlopen(reported["url"], timeout=10).status == 200)


@pytest.mark.long
def test_two_of_them_run_side_by_side_and_one_is_made_afresh(demo: Demo, neighbour: Demo) -> None:
    """Guards that all a demo has goes by its folder (`Place`, `processes.marked`): by anything
    else, one would stop, reset or take over its neighbour. A demo that runs is not reset (the
    lock)."""
    one, two = demo.start(), neighbour.start()
    for part in ("url", "password", "token", "replicator_id"):
        assert one[part] != two[part]
    assert one["source"]["dsn"] != two["source"]["dsn"]
    assert one["target"] != two["target"]
    assert answers(one) and answers(two)
    assert not demo.left() & neighbour.left()

    refused = subprocess.run(
        demo.command("--reset"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1, "a demo that runs was reset"
    assert "Stop it first" in refused.stdout
    assert demo.end(signal.SIGTERM) == 0
    assert answers(two), "it was stopped with its neighbour"

    again = demo.start("--reset")
    for part in ("password", "token", "replicator_id"):
        assert again[part] != one[part]
    with psycopg.connect(again["source"]["dsn"]) as connection:
        slots = connection.execute("SELECT slot_name FROM pg_replication_slots").fetchall()
    old = one["replicator_id"].replace("-", "")
    assert not any(old in name for (name,) in slots), "state of the demo before"
    assert neighbour.place.read(neighbour.place.result) == two
    assert answers(two)
    before = orders(two["source"]["dsn"])
    until(lambda: orders(two["source"]["dsn"]) > before, "the neighbour's traffic", 30)
    for made in (neighbour, demo):
        assert made.end(signal.SIGTERM) == 0
        assert not made.left()
