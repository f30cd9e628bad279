"""Line `postgresql-together`: all tables merged in one transaction of PostgreSQL, beside each table
by itself. The source is in memory and tasks are threads, so that merges are what differs."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from benchmarks import place
from benchmarks.into import OURS
from benchmarks.native import fresh
from benchmarks.report import Peer, Result
from demo.postgres import EmbeddedPostgres
from replicators.connectors import registry
from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from replicators.connectors.target import TargetPlugin
from replicators.sources.memory.database import database, insert
from runners.engine import run
from runners.engine.job import Job, JobOptions
from runners.engine.store.protocol import MemoryStore
from runners.engine.tasks.local import LocalTasks
from tests.local.polled import KEYED, PolledWorld, Running, note

TABLES = tuple(TableId("shop", f"notes_{n}") for n in range(8))
ROWS, TRANSACTIONS = 500, place.scaled(20, 2)
LOOKS = place.scaled(12, 2)
BY_ITSELF, TOGETHER = "each by itself", "together"


class Side(PolledWorld):
    """A copy of eight tables into a database of its own."""

    def __init__(self, folder: Path, server: EmbeddedPostgres, name: str) -> None:
        folder.mkdir()
        super().__init__(folder, name)
        self.server, self.name, self.next = server, name, 1000
        self.place = f"{OURS}_{folder.name}"
        fresh(server, self.place)
        self.store = MemoryStore(list(TABLES))
        self.settings = replace(self.settings, merge_seconds=0.5, seal_seconds=0.2)
        for number, table in enumerate(TABLES):
            self.database.create(replace(KEYED, id=table, native_id=1000 + number))
            self.database.commit(insert(table, note(1)))

    def target(self) -> tuple[TargetPlugin, Any]:
        plugin = registry.targets()["postgresql"]
        return plugin, parse(plugin.params, self.server.params(self.place))

    def job(self) -> Job:
        return replace(super().job(), options=JobOptions(consistent=self.name == TOGETHER))

    def write(self, transactions: int, rows: int) -> None:
        """Transactions with so many rows of each table."""
        for _ in range(transactions):
            numbers = range(self.next, self.next + rows)
            self.database.commit(*(insert(t, note(n)) for t in TABLES for n in numbers))
            self.next += rows

    def shown(self) -> int:
        """How many tables show the last row to a reader."""
        found = " + ".join(
            f"(SELECT count(*) FROM {t.schema}.{t.name} WHERE id = {self.next - 1})" for t in TABLES
        )
        return int(self.server.execute(f"SELECT {found}", database=self.place)[0][0])

    def seconds(self, running: Running, transactions: int, rows: int) -> tuple[float, float]:
        """From the first commit until a reader sees all of it: the mean of the tables, and the last
        one."""
        began, seen = time.monotonic(), list[float]()
        self.write(transactions, rows)

        def is_all() -> bool:
            more = self.shown() - len(seen)
            seen.extend([time.monotonic() - began] * more)
            return len(seen) == len(TABLES)

        running.until(is_all, 600)
        return statistics.mean(seen), seen[-1]


def measure(line: str) -> list[Result]:
    """Both ways one after the other, round by round, in one process."""
    run.SparkTasks = lambda _, folder: LocalTasks(folder=folder)  # type: ignore[assignment, misc]
    found: dict[str, dict[str, list[float]]] = {
        kind: {BY_ITSELF: [], TOGETHER: []} for kind in ("table", "all", "backlog")
    }
    with place.folder(line) as folder, EmbeddedPostgres(fsync=False) as server:
        sides = [Side(folder / name.split()[0], server, name) for name in (BY_ITSELF, TOGETHER)]
        for _ in range(place.ROUNDS):
            for side in sides:
                running = side.start(cast(Any, None))
                running.until(side.is_replicating)
                side.seconds(running, 1, 1)
                for _ in range(LOOKS):
                    mean, last = side.seconds(running, 1, 10)
                    found["table"][side.name].append(mean)
                    found["all"][side.name].append(last)
                _, took = side.seconds(running, TRANSACTIONS, ROWS)
                changes = TRANSACTIONS * ROWS * len(TABLES)
                found["backlog"][side.name].append(changes / took)
                running.stop()
        checked = all(_rows(side) == side.next - 1000 + 1 for side in sides)
    database.cache_clear()
    return [_result(f"{line}-{kind}", kind, values, checked) for kind, values in found.items()]


def _result(line: str, kind: str, found: dict[str, list[float]], checked: bool) -> Result:
    ours, other = (statistics.median(found[name]) for name in (TOGETHER, BY_ITSELF))
    is_rate = kind == "backlog"
    about = {
        "table": "From a commit until a table shows it: the mean of the tables.",
        "all": "From a commit until all tables show it.",
        "backlog": f"{TRANSACTIONS} transactions with {ROWS} rows of each table.",
    }
    return Result(
        line, "changes/s" if is_rate else "s", round(ours, 3), None,
        (Peer(BY_ITSELF, round(other, 3)),), round(ours / other, 2), at_most=not is_rate,
        checked=checked,
        note=f"{len(TABLES)} tables, rows of each in every transaction. {about[kind]} The source "
        "is in memory, and tasks are threads. The ratio is ours over the other.",
    )  # fmt: skip


def _rows(side: Side) -> int:
    """How many rows each table has; -1 where they differ."""
    counts = {
        side.server.execute(f"SELECT count(*) FROM {t.schema}.{t.name}", database=side.place)[0][0]
        for t in TABLES
    }
    return int(counts.pop()) if len(counts) == 1 else -1
