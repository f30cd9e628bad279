"""Line `postgresql-lag`: 500 row changes a second over seven tables, from a change's commit at the
source to the commit at the target that holds it. The peer is the lag of PostgreSQL's own logical
replication, in a later part of the same traffic.

Neither time comes from the engine. PostgreSQL wrote the source's commit times into its log; the
target's server wrote its own for each transaction that changed the progress table.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np

from benchmarks import place
from benchmarks.into import OURS, IntoPostgresql
from benchmarks.lag import COMPARED, RATE, WARM_SECONDS, catch_up, committed, minutes
from benchmarks.native import STREAMED, Native, pair
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu
from benchmarks.run import EngineRun
from demo import shop
from demo.postgres import EmbeddedPostgres
from demo.traffic import Traffic
from replicators.connectors.model.schema import TableId

NATIVE = "logical replication"
PROGRESS = "shop._replicator_progress"
NOTED = f"""
CREATE SCHEMA bench;
CREATE TABLE bench.seen (row jsonb);
CREATE FUNCTION bench.note() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO bench.seen VALUES (to_jsonb(NEW)); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON {PROGRESS} FOR EACH ROW EXECUTE FUNCTION bench.note();
"""
"""Keeps each row that the progress table had. Its transaction is the merge's."""
SEEN = """
SELECT row::text, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM bench.seen
ORDER BY 2
"""
MARKS = "CREATE TABLE shop.marks (id serial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp()"
SEEN_MARKS = f"{MARKS}, seen timestamptz DEFAULT clock_timestamp())"
EVERY_SECONDS = 0.05


def visible(server: EmbeddedPostgres) -> dict[str, tuple[np.ndarray[Any, Any], ...]]:
    """For each table, from the merges' transactions in order: the sequence that each one reached,
    and its commit time (seconds)."""
    found: dict[str, list[tuple[int, float]]] = {}
    for text, at in server.execute(SEEN, database=OURS):
        row = json.loads(text)
        found.setdefault(row["target_table"], []).append((int(row["sequence"]), at))
    return {
        name: (
            np.maximum.accumulate(np.array([s for s, _ in rows], np.int64)),
            np.array([at for _, at in rows]),
        )
        for name, rows in found.items()
    }


def lags(
    run: EngineRun, shown: tuple[np.ndarray[Any, Any], ...], table: TableId, since: float,
    until: float
) -> np.ndarray[Any, Any]:  # fmt: skip
    """The lag of each change committed within the interval; infinite where the change never
    arrived."""
    sequence, at = committed(run, table)
    inside = (at >= since) & (at <= until)
    upto, when = shown
    return np.append(when, np.inf)[np.searchsorted(upto, sequence[inside])] - at[inside]


def is_equal(source: EmbeddedPostgres, server: EmbeddedPostgres, side: str, name: str) -> bool:
    """Whether target and source hold the same rows, compared by their keys and by the columns that
    the traffic changes."""
    sql = f"SELECT {', '.join(COMPARED[name])} FROM shop.{name}"
    there, here = (
        sorted(tuple(map(str, row)) for row in s.execute(sql, database=database))
        for s, database in ((server, side), (source, shop.DATABASE))
    )
    return there == here


def native_lags(native: Native, traffic: Traffic, seconds: float) -> np.ndarray[Any, Any]:
    """The lags of rows that are written beside the traffic, twenty a second: each has the source's
    time, and the subscriber adds its own."""
    native.subscribe()
    native.wait(STREAMED)
    worker = threading.Thread(target=traffic.run)
    worker.start()
    end = time.monotonic() + seconds
    try:
        with native.source.connect(native.source_database) as connection:
            while time.monotonic() < end:
                connection.execute("INSERT INTO shop.marks DEFAULT VALUES")
                time.sleep(EVERY_SECONDS)
    finally:
        traffic.stop.set()
        worker.join()
    last = native.source.execute("SELECT max(id) FROM shop.marks", database=native.source_database)
    late = time.monotonic() + seconds
    count = "SELECT max(id) FROM shop.marks"
    while native.target.execute(count, database=native.name) != last:
        if time.monotonic() > late:
            raise TimeoutError(f"{NATIVE} does not catch up")
        time.sleep(0.1)
    sql = "SELECT extract(epoch FROM seen - at)::float8 FROM shop.marks"
    found = np.array([lag for (lag,) in native.target.execute(sql, database=native.name)])
    native.end()
    return found


def measure(line: str) -> list[Result]:
    """Run the demo's shop, its traffic and the engine for some minutes, then the peer."""
    with place.folder(line) as folder, pair(track_commit_timestamp="on") as (source, server):
        shop.install(source, orders=place.scaled(shop.ORDERS, 1000))
        source.execute(f"{MARKS})", database=shop.DATABASE)
        tables, into = [TableId(shop.SCHEMA, name) for name in shop.TABLES], IntoPostgresql(server)
        into.fresh(OURS)
        traffic = Traffic(source.dsn(shop.DATABASE), rate=RATE, seed=1)
        worker = threading.Thread(target=traffic.run)
        values = into.values(OURS)
        with EngineRun(
            folder, source.params(shop.DATABASE), values, tables, into=into.plugin.name,
            is_paced=True,
        ) as run:  # fmt: skip
            run.wait_replicating()
            server.execute(NOTED, database=OURS)
            worker.start()
            time.sleep(WARM_SECONDS)
            since, before, cpu = time.time(), traffic.changes, Cpu()
            time.sleep(60 * minutes())
            busy, spent = cpu.share(), cpu.said()
            until, rate = time.time(), (traffic.changes - before) / (60 * minutes())
            traffic.stop.set()
            worker.join()
            checked = catch_up(shop.TABLES, lambda name: is_equal(source, server, OURS, name), run)
            shown = visible(server)
            by = {t.name: lags(run, shown[t.name], t, since, until) for t in tables}
        traffic.stop.clear()
        native = Native(source, server, "native", source_database=shop.DATABASE)
        native.prepare("", [f"shop.{name}" for name in (*shop.TABLES, "marks")])
        shop.install(server, database=native.name, orders=1000)
        emptied = ", ".join(f"shop.{name}" for name in shop.TABLES)
        server.execute(f"TRUNCATE {emptied}; {SEEN_MARKS}", database=native.name)
        theirs = native_lags(native, traffic, 15 * minutes())
    every = np.concatenate(list(by.values()))
    checked = checked and bool(np.isfinite(every).all()) and rate >= 0.9 * RATE
    slowest = max(by, key=lambda n: np.percentile(by[n], 99))
    note = (
        f"{len(every):,} changes in {minutes():g} minutes, {rate:.0f} a second over "
        f"{len(tables)} tables; largest {every.max():.1f} s; the slowest table is {slowest} (p99 "
        f"{np.percentile(by[slowest], 99):.1f} s). {apart(shown, since, until)}; servers, traffic "
        f"and run had {100 * busy:.0f} % of the cores, CPU seconds: {spent}. The native lag is "
        f"that of {len(theirs):,} rows which were written beside the same traffic afterwards; the "
        "ratio is its lag over ours."
    )
    return [
        _result(f"{line}-p50", every, theirs, 50, 1.5, checked, note),
        _result(f"{line}-p99", every, theirs, 99, 4, checked, note),
    ]


def apart(shown: dict[str, tuple[np.ndarray[Any, Any], ...]], since: float, until: float) -> str:
    """A text on what a change waits for: the time between a table's commits."""
    gaps = np.concatenate([np.diff(at[(at >= since) & (at <= until)]) for _, at in shown.values()])
    if not len(gaps):
        return "There was no second commit of a table"
    return (
        f"A table's commits lay {np.median(gaps):.2f} s apart in the middle, {gaps.max():.1f} s "
        "at most"
    )


def _result(
    name: str, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], percent: int,
    target: float, checked: bool, note: str,
) -> Result:  # fmt: skip
    mine, peer = (float(np.percentile(v, percent)) for v in (ours, theirs))
    return Result(
        name, "s", round(mine, 2), target, (Peer(NATIVE, round(peer, 3)),), round(peer / mine, 3),
        at_most=True, is_absolute=True, checked=checked, note=note,
    )  # fmt: skip
