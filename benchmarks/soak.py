"""Lines `soak-...`: what a long run holds: open files, connections of the catalog, threads, heap
and memory.

The load is the demo's shop and its traffic, for SOAK_MINUTES. The JVM's files, threads and memory
are read from /proc, as an operator would; its heap comes from `jcmd`. A run without leaks has the
same figures at its end as after its first quarter.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from benchmarks import place
from benchmarks.lag import COMPARED, catch_up
from benchmarks.report import Result
from benchmarks.run import EngineRun
from demo import shop
from demo.postgres import EmbeddedPostgres
from demo.traffic import RATE, Traffic
from replicators.connectors.model.schema import TableId
from replicators.targets.lakehouse.delta import Delta

MINUTES = float(os.environ.get("SOAK_MINUTES", "60"))
READINGS = 12
WARM_SHARE = 0.25
MORE = 30
"""Growth that is no leak: files that are being written, threads of a pool that grows and
shrinks."""
MIB = 1 << 20
CATALOG = "lake_catalog"
USED = re.compile(r"total \d+K, used (\d+)K")
"""The used size of a generation, or of the whole heap, in the output of `jcmd GC.heap_info`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the run holds at one moment; sizes in MiB."""

    minute: float
    files: int
    connections: int
    threads: int
    driver_files: int
    driver_threads: int
    processes: int
    heap: int
    jvm: int
    driver: int
    merged: int


class Watch:
    """Reads what a run holds. `connections` counts the catalog's connections."""

    def __init__(self, run: EngineRun, connections: Callable[[psutil.Process], int]) -> None:
        self._run = run
        self._connections = connections
        self._began = time.monotonic()
        self._jcmd = shutil.which("jcmd")

    def read(self) -> Reading:
        """Take one reading."""
        driver = psutil.Process(self._run.pid)
        below = driver.children(recursive=True)
        jvm = next(process for process in below if _is_java(process))
        return Reading(
            minute=round((time.monotonic() - self._began) / 60, 1),
            files=jvm.num_fds(),
            connections=self._connections(jvm),
            threads=jvm.num_threads(),
            driver_files=driver.num_fds(),
            driver_threads=driver.num_threads(),
            processes=1 + len(below),
            heap=self._heap(jvm.pid),
            jvm=jvm.memory_info().rss // MIB,
            driver=driver.memory_info().rss // MIB,
            merged=sum(t["rows"] for t in self._run.states().values()),
        )

    def _heap(self, pid: int) -> int:
        """MiB of live objects, after a full collection. 0 where there is no `jcmd`."""
        if self._jcmd is None:
            return 0
        for command in ("GC.run", "GC.heap_info"):
            told = subprocess.run(
                [self._jcmd, str(pid), command], capture_output=True, text=True, check=True
            )
        return sum(map(int, USED.findall(told.stdout))) // 1024


def _is_java(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.name().startswith("java")
    return False


def catalogs(
    server: EmbeddedPostgres, folder: Path, kind: str
) -> tuple[dict[str, Any], Callable[[psutil.Process], int]]:
    """The target's values for a kind of lakehouse, and a function that counts its catalog's
    connections."""
    if kind == "delta":
        return place.target_values(folder, "delta", namespace="shop"), lambda _: 0
    if kind == "iceberg-sqlite":
        values = place.target_values(folder, namespace="shop")
        return values, lambda jvm: sum(f.path.endswith("/catalog.db") for f in jvm.open_files())
    server.execute(f"CREATE DATABASE {CATALOG}")
    values = place.target_values(
        folder,
        namespace="shop",
        catalog_uri=f"postgresql://{server.host}:{server.port}/{CATALOG}",
        catalog_user=server.user,
        catalog_password=server.password,
    )
    counted = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{CATALOG}'"
    return values, lambda _: int(server.execute(counted)[0][0])


def rows(target: Any, name: str) -> list[tuple[str, ...]]:
    """A target table's rows, with the columns that the traffic changes."""
    columns = COMPARED[name]
    if target.format == "delta":
        from deltalake import DeltaTable, QueryBuilder

        table = DeltaTable(Delta(target).folder(("shop", name)))
        asked = f"SELECT {', '.join(columns)} FROM t"  # noqa: S608 - names of the demo's
        made = QueryBuilder().register("t", table).execute(asked).read_all()
        found: list[dict[str, Any]] = pa.table(made).to_pylist()
        return sorted(tuple(str(row[c]) for c in columns) for row in found)
    from pyiceberg.catalog.sql import SqlCatalog

    from replicators.targets.lakehouse.catalog import uri

    catalog = SqlCatalog(target.catalog_name, uri=uri(target), warehouse=target.warehouse)
    try:
        scan = catalog.load_table(("shop", name)).scan(selected_fields=columns).to_arrow()
        return sorted(zip(*(map(str, scan.column(c).to_pylist()) for c in columns), strict=True))
    finally:
        catalog.close()


def is_equal(server: EmbeddedPostgres, target: Any, name: str) -> bool:
    """Whether target and source hold the same rows."""
    asked = f"SELECT {', '.join(COMPARED[name])} FROM shop.{name}"  # noqa: S608 - names of the demo's
    wanted = server.execute(asked, database=shop.DATABASE)
    return rows(target, name) == sorted(tuple(map(str, row)) for row in wanted)


def more(readings: Sequence[Reading], name: str) -> int:
    """Difference between the maxima of the last quarter and of the second one. Maxima, because
    pools grow and shrink meanwhile."""
    quarter = int(READINGS * WARM_SHARE)
    values = [int(getattr(r, name)) for r in readings]
    return max(values[-quarter:]) - max(values[quarter : 2 * quarter])


def said(readings: Sequence[Reading]) -> str:
    """Text for a note: each figure with its readings."""
    words = {
        "files": "open files of the JVM",
        "connections": "connections of the catalog",
        "threads": "threads of the JVM",
        "driver_files": "open files of Python",
        "driver_threads": "threads of Python",
        "processes": "processes",
        "heap": "living heap MiB",
        "jvm": "JVM MiB",
        "driver": "Python MiB",
    }
    shown = [
        f"{words[f.name]} {' '.join(str(getattr(r, f.name)) for r in readings)}"
        for f in fields(Reading)
        if f.name in words and any(getattr(r, f.name) for r in readings)
    ]
    return "; ".join([f"after minutes {' '.join(str(r.minute) for r in readings)}", *shown])


def measure(line: str) -> list[Result]:
    """Run the demo's shop and traffic into one kind of lakehouse."""
    kind = line.removeprefix("soak-")
    with place.folder(line) as folder, EmbeddedPostgres(fsync=False) as server:
        shop.install(server)
        values, counted = catalogs(server, folder, kind)
        target = place.parse(place.TARGET.params, values)
        traffic = Traffic(server.dsn(shop.DATABASE), rate=RATE, seed=1)
        worker = threading.Thread(target=traffic.run)
        tables = [TableId(shop.SCHEMA, name) for name in shop.TABLES]
        with EngineRun(folder, server.params(shop.DATABASE), values, tables) as run:
            run.wait_replicating()
            watch, readings = Watch(run, counted), []
            worker.start()
            for number in range(READINGS + 1):
                at = time.monotonic() + (60 * MINUTES / READINGS if number else 0)
                run.wait(lambda _, at=at: time.monotonic() >= at, 120 * MINUTES)  # type: ignore[misc]
                readings.append(watch.read())
                place.logger.info("%s", readings[-1])
            traffic.stop.set()
            worker.join()
            checked = catch_up(shop.TABLES, lambda name: is_equal(server, target, name), run)
    return [
        Result(
            line,
            "more files or threads",
            max(more(readings, name) for name in ("files", "connections", "threads")),
            MORE,
            at_most=True,
            is_absolute=True,
            checked=checked,
            note=f"{MINUTES:g} minutes of the demo's traffic, {traffic.changes:,} row changes "
            f"over {len(tables)} tables; "
            "open files, connections or threads in the last quarter of the time beyond those in "
            f"the second. {said(readings)}.",
        )
    ]
