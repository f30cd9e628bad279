"""Line `shared-memory`: what many small replicators that share a Spark cost, and how late their
changes are while each gets one every half a minute. A run's first merges load what it needs for
them: the changes of the first minutes are told apart. The measured ones begin once they are merged.

Every part is the product's own: the process of the shared Spark, the starter of runs, and the runs.
Memory is PSS: a page that several processes have counts once, in parts. SHARED_REPLICATORS says how
many replicators there are, SHARED_SECONDS how long they are measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks import place
from benchmarks.report import Result
from benchmarks.resources import unwatched
from demo.postgres import EmbeddedPostgres

REPLICATORS = int(os.environ.get("SHARED_REPLICATORS", str(place.scaled(50, 2))))
SECONDS = float(os.environ.get("SHARED_SECONDS", "120"))
EVERY_SECONDS = 30.0
FIRST_SECONDS = 180.0
READY_SECONDS = 500.0
ROWS = 200
MIB = 2**20
TARGET_MIB = 120
ROOM = {"max_replication_slots": "220", "max_wal_senders": "220", "max_connections": "1000"}


class Installation:
    """The program's database with its replicators, and their processes."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
            "DATABASE_URL": database,
            "REPLICATOR_VAR_DIR": str(folder / "var"),
            "REPLICATOR_RUN_LOG_DIR": str(folder / "run-logs"),
            "REPLICATOR_LOG_URL": str(folder / "log"),
            "REPLICATOR_JARS_DIR": place.settings(folder).jars_dir,
            "REPLICATOR_SPARK": "shared",
            "REPLICATOR_SPARK_LOCAL_DIR": str(folder / "spark"),
            "REPLICATOR_SPARK_SHARED_DIR": str(folder / "shared"),
            "REPLICATOR_SECRET_KEY": "",
            "DEBUG": "true",
            "REDIS_URL": "",
        }
        os.environ |= self.environment
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        self.keeper: subprocess.Popen[bytes] | None = None
        self.runs: list[Any] = []

    def add(self, number: int, source: dict[str, Any], target: dict[str, Any]) -> None:
        """A replicator of one table."""
        from replicators.services import replicator_create
        from runners.services import tables_sync

        made = replicator_create(
            actor=None, name=f"small{number}", source_kind="postgresql", source_params=source,
            target_kind="lakehouse", target_params=target,
            tables=[{"schema": "bench", "name": f"t{number}"}], options={},
        )  # fmt: skip
        tables_sync(made)

    def begin(self) -> None:
        """Start the shared Spark, and a run of each replicator as its supervisor does."""
        from django.conf import settings
        from django.utils import timezone

        from replicators.models import Replicator
        from runners.models import Run
        from runners.supervision.starter import spawn_copies
        from runners.supervision.supervisor import default_spawn

        with open(self.folder / "keeper.log", "wb") as output:
            self.keeper = subprocess.Popen(
                [sys.executable, "manage.py", "share_spark"], cwd=place.ROOT,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        shared = settings.RUNNER.spark_shared_dir
        spawn = spawn_copies(settings.RUN_LOG_DIR, shared, default_spawn())
        for replicator in Replicator.objects.all():
            run = Run.objects.create(
                replicator=replicator,
                lease=uuid.uuid4().hex,
                lease_until=timezone.now() + timedelta(seconds=600),
            )
            self.runs.append(spawn(str(run.pk), run.lease))

    def wait_replicating(self) -> None:
        """Wait until every table is replicating."""
        from runners.models import Table

        end = time.monotonic() + READY_SECONDS
        while waiting := list(
            Table.objects.exclude(state="replicating").values_list("name", "state", "error_code")
        ):
            if time.monotonic() > end:
                raise TimeoutError(f"{len(waiting)} tables are not there: {waiting[:3]}")
            time.sleep(1)

    def memory(self) -> dict[str, float]:
        """MiB of the JVM, its Python workers, the two processes beside it, and the runs."""
        assert self.keeper is not None
        found = {"JVM": 0.0, "workers": 0.0, "keeper and starter": 0.0, "runs": 0.0}
        runs = {run.pid for run in self.runs}
        root = psutil.Process(self.keeper.pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                pss = process.memory_full_info().pss / MIB
                said = " ".join(process.cmdline())
                if process.pid in runs:
                    part = "runs"
                elif "SparkSubmit" in said:
                    part = "JVM"
                else:
                    part = "workers" if "tasks.worker" in said else "keeper and starter"
                found[part] += pss
        return found

    def close(self) -> None:
        """End everything."""
        for run in self.runs:
            run.end()
        if self.keeper is not None:
            from runners.engine.processes import end_session

            end_session(self.keeper.pid)


@contextmanager
def installed(folder: Path) -> Iterator[Installation]:
    """An installation, ended afterwards. As for many replicators, PostgreSQL holds its database."""
    with EmbeddedPostgres(options=ROOM) as own:
        database = f"postgresql://{own.user}:{own.password}@{own.host}:{own.port}/postgres"
        made = Installation(folder, database)
        try:
            yield made
        finally:
            made.close()


def measure(line: str) -> list[Result]:
    """Copy a table for each replicator, look at the memory, and then change a row in each twice a
    minute, spread over the half minute."""
    with (
        place.folder(line) as folder,
        EmbeddedPostgres(fsync=False, options=ROOM) as server,
        unwatched(),
        installed(folder) as made,
    ):
        server.execute("CREATE SCHEMA bench")
        targets = []
        for number in range(REPLICATORS):
            server.execute(
                f"CREATE TABLE bench.t{number} (id bigint PRIMARY KEY, note text, at timestamptz);"
                f"INSERT INTO bench.t{number} SELECT n, 'note', now() FROM "
                f"generate_series(1, {ROWS}) n"
            )
            own = folder / f"lake{number}"
            own.mkdir()
            targets.append(place.target_params(own))
            made.add(number, server.params(), place.target_values(own))
        made.begin()
        made.wait_replicating()
        time.sleep(10)
        memory = made.memory()
        begun = changes(server, FIRST_SECONDS)
        early = wait_merged(targets, begun)
        committed = changes(server, SECONDS)
        late, checked = lags(targets, committed)
    total = sum(memory.values())
    said = ", ".join(f"{part} {size:,.0f}" for part, size in memory.items())
    p50, p99 = np.percentile(late, (50, 99)).tolist()
    early_p50, early_p99 = np.percentile(early, (50, 99)).tolist()
    note = (
        f"{REPLICATORS} idle replicators: {total:,.0f} MiB ({said}); a run is "
        f"{memory['runs'] / REPLICATORS:.0f} MiB of it."
    )
    return [
        Result(
            line, "MiB", round(total / REPLICATORS), TARGET_MIB,
            at_most=True, is_absolute=True, checked=checked, note=note,
            memory_gib=round(total / 1024, 2),
        ),
        Result(
            f"{line}-p99", "s", round(p99, 2), 3, at_most=True, is_absolute=True, checked=checked,
            note=f"{len(late)} changes, one each {EVERY_SECONDS:.0f} s in each of {REPLICATORS} "
            f"replicators, from the commit at PostgreSQL to that at Iceberg; p50 {p50:.2f} s. "
            f"The first {FIRST_SECONDS:.0f} s, with each run's first merges, came before: p50 "
            f"{early_p50:.2f} s, p99 {early_p99:.2f} s.",
        ),
    ]  # fmt: skip


def changes(server: EmbeddedPostgres, seconds: float) -> list[list[float]]:
    """Change a row of each table every half a minute. The times of the commits, by table."""
    committed: list[list[float]] = [[] for _ in range(REPLICATORS)]
    began = time.monotonic()
    for turn in range(int(seconds / EVERY_SECONDS)):
        for number in range(REPLICATORS):
            due = began + EVERY_SECONDS * (turn + number / REPLICATORS)
            time.sleep(max(0.0, due - time.monotonic()))
            server.execute(f"UPDATE bench.t{number} SET at = now() WHERE id = {turn + 1}")
            committed[number].append(time.time())
    time.sleep(EVERY_SECONDS)
    return committed


def wait_merged(targets: list[Any], committed: list[list[float]]) -> list[float]:
    """Wait until each change is at the target. Returns how late each one was."""
    end = time.monotonic() + READY_SECONDS
    while True:
        late, is_right = lags(targets, committed)
        if is_right:
            return late
        if time.monotonic() > end:
            raise TimeoutError("The first changes are not at the target.")
        time.sleep(5)


def lags(targets: list[Any], committed: list[list[float]]) -> tuple[list[float], bool]:
    """How late each change was; whether each is there. A change is at the target with the first
    later snapshot: the table gets no other."""
    late, is_right = [], True
    for number, (target, times) in enumerate(zip(targets, committed, strict=True)):
        table = place.iceberg_table(target, "bench", f"t{number}")
        merged = sorted(s.timestamp_ms / 1000 for s in table.snapshots())
        for at in times:
            later = [m for m in merged if m > at]
            is_right = is_right and bool(later)
            late.append(later[0] - at if later else EVERY_SECONDS)
        is_right = is_right and table.scan(selected_fields=("id",)).to_arrow().num_rows == ROWS
    return late, is_right
