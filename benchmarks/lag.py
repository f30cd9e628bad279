"""Line `lag`: from a change's commit at the source to the commit of the first target snapshot that
holds it.

Neither time comes from the engine. PostgreSQL wrote the source's commit times into its log; Iceberg
wrote the target's into the tables' snapshots. Every change in the measured minutes counts.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import place
from benchmarks.report import Result
from benchmarks.run import EngineRun
from demo import shop
from demo.postgres import EmbeddedPostgres
from demo.traffic import Traffic
from replicators.connectors.model.schema import TableId

RATE = float(os.environ.get("BENCH_RATE", "500"))
WARM_SECONDS = 45.0
CATCH_UP_SECONDS = 120.0
COLUMNS = ["_sequence", "_committed_at"]
COMPARED = {
    "customers": ("id", "name", "email", "tier", "is_active"),
    "products": ("id", "name", "price"),
    "orders": ("id", "customer_id", "status", "total", "is_gift", "note"),
    "order_lines": ("order_id", "line", "product_id", "quantity", "price"),
    "payments": ("id", "order_id", "method", "amount"),
    "inventory": ("product_id", "quantity"),
    "page_views": ("customer_id", "path", "agent", "duration_ms"),
}


def minutes() -> float:
    """Minutes of measurement: four at full scale."""
    return max(0.25, 4 * place.SCALE)


def committed(run: EngineRun, table: TableId) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Sequences and commit times (seconds) of a table's changes, in order."""
    word = re.compile(rf"\d{{12}}-\w+-{re.escape(str(table))}-[^-]+\.parquet")
    paths = sorted(p for p in (run.log / "changes").iterdir() if word.fullmatch(p.name))
    rows = pa.concat_tables([pq.read_table(p, columns=COLUMNS) for p in paths])
    rows = rows.sort_by("_sequence")
    at = rows.column("_committed_at").cast(pa.int64()).to_numpy() / 1e6
    return rows.column("_sequence").to_numpy(), at


def visible(target: Any, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """From the table's snapshots, in order: the sequence each one reaches, and its commit time
    (seconds)."""
    table = place.iceberg_table(target, "shop", name)
    seen = []
    for snapshot in sorted(table.snapshots(), key=lambda s: s.sequence_number or 0):
        told = snapshot.summary.additional_properties if snapshot.summary else {}
        if "replicator.sequence" in told:
            seen.append((int(told["replicator.sequence"]), snapshot.timestamp_ms / 1000))
    sequences, at = zip(*seen, strict=True)
    return np.maximum.accumulate(np.array(sequences, np.int64)), np.array(at)


def lags(
    run: EngineRun, target: Any, table: TableId, since: float, until: float
) -> np.ndarray[Any, Any]:
    """The lag of each change committed within the interval; infinite where the change never
    arrived."""
    sequence, at = committed(run, table)
    upto, shown = visible(target, table.name)
    inside = (at >= since) & (at <= until)
    first = np.searchsorted(upto, sequence[inside])
    return np.append(shown, np.inf)[first] - at[inside]


def is_equal(server: EmbeddedPostgres, target: Any, name: str) -> bool:
    """Whether target and source hold the same rows, compared by their keys and by the columns that
    the traffic changes."""
    columns = COMPARED[name]
    found = place.iceberg_table(target, "shop", name).scan(selected_fields=columns).to_arrow()
    there = sorted(zip(*(map(str, found.column(c).to_pylist()) for c in columns), strict=True))
    wanted = server.execute(f"SELECT {', '.join(columns)} FROM shop.{name}", database=shop.DATABASE)
    return there == sorted(tuple(map(str, row)) for row in wanted)


@dataclass(frozen=True, slots=True)
class Measured:
    """The lags of a place's changes by table, in seconds; `rate` is changes a second."""

    by: dict[TableId, np.ndarray[Any, Any]]
    rate: float
    checked: bool

    @property
    def every(self) -> np.ndarray[Any, Any]:
        """Of all tables."""
        return np.concatenate(list(self.by.values()))

    def percentiles(self) -> tuple[float, float]:
        """The median and the 99th of all changes."""
        p50, p99 = (float(np.percentile(self.every, p)) for p in (50, 99))
        return p50, p99


def measured(folder: Path, **where: Any) -> Measured:
    """Run the demo's shop, its traffic and the engine for some minutes. `where`: fields of the
    target beside the usual ones."""
    with EmbeddedPostgres(fsync=False) as server:
        shop.install(server, orders=place.scaled(shop.ORDERS, 1000))
        tables = [TableId(shop.SCHEMA, name) for name in shop.TABLES]
        values = place.target_values(folder, namespace="shop", **where)
        target = place.target_params(folder, namespace="shop", **where)
        traffic = Traffic(server.dsn(shop.DATABASE), rate=RATE, seed=1)
        worker = threading.Thread(target=traffic.run)
        with EngineRun(folder, server.params(shop.DATABASE), values, tables) as run:
            run.wait_replicating()
            worker.start()
            time.sleep(WARM_SECONDS)
            since, before = time.time(), traffic.changes
            time.sleep(60 * minutes())
            until, rate = time.time(), (traffic.changes - before) / (60 * minutes())
            traffic.stop.set()
            worker.join()
            checked = catch_up(shop.TABLES, lambda name: is_equal(server, target, name), run)
            by = {t: lags(run, target, t, since, until) for t in tables}
    found = Measured(by, rate, checked)
    right = bool(np.isfinite(found.every).all()) and rate >= 0.9 * RATE
    return replace(found, checked=checked and right)


def measure(line: str) -> list[Result]:
    """The lakehouse on this machine's disk."""
    with place.folder(line) as folder:
        found = measured(folder)
    by, every, checked = found.by, found.every, found.checked
    p50, p99 = found.percentiles()
    slowest = max(by, key=lambda n: np.percentile(by[n], 99))
    note = (
        f"{len(every):,} changes in {minutes():g} minutes, {found.rate:.0f} a second over "
        f"{len(by)} tables; largest "
        f"{every.max():.1f} s; the slowest table is {slowest.name} (p99 "
        f"{np.percentile(by[slowest], 99):.1f} s). Bounded by "
        "the seven tables' commits, which share two cores."
    )
    return [
        Result(
            f"{line}-p50",
            "s",
            round(p50, 2),
            5,
            at_most=True,
            is_absolute=True,
            checked=checked,
            note=note,
        ),
        Result(
            f"{line}-p99",
            "s",
            round(p99, 2),
            15,
            at_most=True,
            is_absolute=True,
            checked=checked,
            note=note,
        ),
    ]


def catch_up(names: Iterable[str], is_level: Callable[[str], bool], run: EngineRun) -> bool:
    """Wait until every table's rows equal the source's; False where a table is too late."""
    end, left = time.monotonic() + CATCH_UP_SECONDS, set(names)
    while left and time.monotonic() < end:
        left = {name for name in left if not is_level(name)}
        time.sleep(0.5)
    if left:
        place.logger.error("not equal: %s; %s", sorted(left), run.states())
    return not left
