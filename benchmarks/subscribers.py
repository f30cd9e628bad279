"""Line `subscribers`: what 50 subscribers that wait for changes cost the web process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks import place
from benchmarks.report import Result
from demo.postgres import free_port
from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from setup.processes import web

SUBSCRIBERS = 50
WAIT_SECONDS = 30
QUIET_SECONDS = place.scaled(60, 10)
CHANGES = place.scaled(20, 5)
TARGET_PERCENT = 5
SCHEMA = TableSchema(
    TableId("shop", "orders"),
    (Column("id", Int(64), "bigint", False, 1), Column("note", String(), "text", ordinal=2)),
    ("id",),
    ("id",),
)
READY_SECONDS, ANSWER_SECONDS = 60, WAIT_SECONDS + 30


@dataclass
class Reader:
    """A subscriber that always has a request on its way. `got`: the changes that it received;
    `refused`: requests that failed and were made again."""

    url: str
    token: str
    got: list[int] = field(default_factory=list)
    refused: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask until it is over."""
        more = ""
        while not self.is_over.is_set():
            request = urllib.request.Request(  # noqa: S310 (our own server)
                f"{self.url}?wait={WAIT_SECONDS}{more}",
                headers={"Authorization": f"Bearer {self.token}"},
            )
            try:
                with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310
                    lines = [json.loads(text) for text in answer]
            except OSError:  # also 503, where SQLite was busy for too long
                self.refused += 1
                time.sleep(0.5)
                continue
            self.got += [n["sequence"] for n in lines if n["type"] == "change"]
            more = f"&checkpoint={lines[-1]['checkpoint']}"


class Feed:
    """The program's database with a replicator, a table that is copied, and its subscribers."""

    def __init__(self, folder: Path) -> None:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
            "DATABASE_URL": f"sqlite:///{folder}/app.sqlite3",
            "REPLICATOR_VAR_DIR": str(folder),
            "ALLOWED_HOSTS": "127.0.0.1",
            "DEBUG": "true",
            "REDIS_URL": "",
        }
        import django

        django.setup()
        from django.contrib.auth.models import User
        from django.core.management import call_command

        from replicators.connectors.target import TargetTable
        from replicators.services import replicator_create
        from replicators.targets.subscribers.params import SubscribersParams
        from replicators.targets.subscribers.writer import SubscribersSink
        from replicators.tokens import token_create
        from runners.engine.tasks.local import LocalTasks
        from runners.models import Table
        from runners.services import tables_sync
        from runners.subscribing.services import subscriber_register

        call_command("migrate", verbosity=0)
        user = User.objects.create_superuser("bench")
        _, self.token = token_create(user=user, name="bench", scope="read")
        where = SubscribersParams(location=str(folder / "feeds"))
        replicator = replicator_create(
            actor=None, name="bench", source_kind="postgresql",
            source_params={"host": "127.0.0.1", "database": "x", "user": "x", "password": "x"},
            target_kind="subscribers", target_params={"location": where.location},
            tables=[{"schema": "shop", "name": "orders"}], options={},
        )  # fmt: skip
        tables_sync(replicator)
        self._sink = SubscribersSink(where, LocalTasks(1))
        self._target = TargetTable(SCHEMA.id, str(replicator.pk), 1)
        self._sink.begin(self._target, SCHEMA)
        self._rows = Table.objects.filter(replicator=replicator)
        self._rows.update(generation=1, is_snapshot_done=True, state="replicating")
        self.sequence = 0
        self.path = f"/api/v1/replicators/{replicator.pk}/subscribers/"
        for n in range(SUBSCRIBERS):
            subscriber_register(replicator=replicator, name=f"s{n}", actor=None)

    def change(self) -> None:
        """One change reaches the target and is recorded."""
        import pyarrow as pa

        from replicators.connectors.contract.sink import HeldLane
        from replicators.connectors.target import BatchKind, ChangeBatch

        after, self.sequence = self.sequence, self.sequence + 1
        row = {
            "_sequence": self.sequence, "_op": int(Op.INSERT), "_transaction": 1, "_position": 1,
            "_committed_at": datetime.now(UTC), "_unchanged": None, "_before": None,
            "id": self.sequence, "note": f"row {self.sequence}",
        }  # fmt: skip
        table = pa.Table.from_pylist([row], change_schema(SCHEMA))
        lane = HeldLane(1, self.sequence, self.sequence, 1, table)
        batch = ChangeBatch(BatchKind.CHANGES, SCHEMA, after, self.sequence, (lane,))
        self._sink.deliver(self._target, batch)
        self._rows.update(merged_sequence=self.sequence)


@contextmanager
def served() -> Iterator[tuple[str, psutil.Process]]:
    """The web process as `make serve` starts it."""
    bind = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen([*web(bind), "--log-level", "warning"], stdout=sys.stderr)
    try:
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://{bind}/sign-in/", timeout=5):
                    break
            except OSError:
                time.sleep(0.2)
        yield f"http://{bind}", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def seconds_of(process: psutil.Process) -> float:
    """The processor time of a process and its children."""
    found = [process, *process.children(recursive=True)]
    return float(sum(sum(p.cpu_times()[:2]) for p in found))


def measure(line: str) -> list[Result]:
    """Wait without changes, then with one change a second."""
    with place.folder(line) as folder:
        feed = Feed(folder)
        with served() as (url, process):
            readers = [
                Reader(f"{url}{feed.path}s{n}/changes/", feed.token) for n in range(SUBSCRIBERS)
            ]
            threads = [threading.Thread(target=r.run, daemon=True) for r in readers]
            for thread in threads:
                thread.start()
            feed.change()
            _until_all(readers, 1)
            quiet = _share(process, lambda: time.sleep(QUIET_SECONDS))
            busy = _share(process, lambda: _changes(feed, readers))
            wanted = list(range(1, feed.sequence + 1))
            is_right = all(list(dict.fromkeys(r.got)) == wanted for r in readers)
            refused = sum(r.refused for r in readers)
            for reader in readers:
                reader.is_over.set()
    note = (
        f"{SUBSCRIBERS} long polls of {WAIT_SECONDS} s at the web process as it ships, for "
        f"{QUIET_SECONDS} s without a change; with a change a second, which each of them reads and "
        f"confirms: {busy:.1f} %. {refused} requests were refused and made again. The program's "
        "database is SQLite."
    )
    figure = Result(
        line, "% of a core", round(quiet, 2), TARGET_PERCENT, at_most=True, is_absolute=True,
        checked=is_right, note=note,
    )  # fmt: skip
    return [figure]


def _share(process: psutil.Process, act: Any) -> float:
    """Percent of a core that the process used meanwhile."""
    before, began = seconds_of(process), time.monotonic()
    act()
    return 100 * (seconds_of(process) - before) / (time.monotonic() - began)


def _changes(feed: Feed, readers: list[Reader]) -> None:
    for _ in range(CHANGES):
        feed.change()
        time.sleep(1)
    _until_all(readers, feed.sequence)


def _until_all(readers: list[Reader], count: int) -> None:
    """Wait until each reader has so many changes."""
    end = time.monotonic() + READY_SECONDS
    while any(len(r.got) < count for r in readers):
        if time.monotonic() > end:
            raise TimeoutError("A subscriber lacks changes.")
        time.sleep(0.05)
