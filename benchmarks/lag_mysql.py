"""Line `lag-mysql`: 2,000 row changes a second over five tables of MySQL, from the commit at the
source to the commit of the first target snapshot that holds the change. The peer is Debezium's own
lag, with no target."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

import numpy as np

from benchmarks import place
from benchmarks.debezium import Told, debezium, for_mysql
from benchmarks.lag import WARM_SECONDS, catch_up, lags, visible
from benchmarks.report import Result
from benchmarks.resources import Cpu
from benchmarks.run import EngineRun
from replicators.connectors.model.schema import TableId
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MysqlServer, SqlServer

RATE = int(os.environ.get("BENCH_MYSQL_RATE", "2000"))
DATABASE = "shop"
NAMES = ("customers", "orders", "order_lines", "payments", "inventory")
ROWS = 20_000
INSERTS, UPDATES, DELETES = 8, 10, 2
DDL = (
    "CREATE TABLE shop.{0} (id bigint PRIMARY KEY, customer int, status varchar(20), amount "
    "decimal(12, 2),"
    " note varchar(80), at datetime(6), ok tinyint(1))"
)
FILL = (
    "INSERT INTO shop.{0} WITH RECURSIVE g AS (SELECT 1 k UNION ALL SELECT k + 1 FROM g WHERE k "
    "< {1})"
    " SELECT k, k % 5000, 'new', k / 7, concat('note ', k), now(6), k % 2 FROM g"
)


def minutes() -> float:
    """Minutes of measurement: five at full scale."""
    return max(0.25, 5 * place.SCALE)


class Traffic:
    """Transactions of twenty row changes of one table, at a steady rate."""

    def __init__(self, server: SqlServer, rate: float) -> None:
        self._server = server
        self._every = (INSERTS + UPDATES + DELETES) / rate
        self._random = random.Random(3)
        self._next = dict.fromkeys(NAMES, ROWS + 1)
        self._first = dict.fromkeys(NAMES, 1)
        self.changes = 0
        self.stop = threading.Event()

    def run(self) -> None:
        """Until `stop`."""
        due = time.monotonic()
        with self._server.connect(DATABASE, autocommit=False) as connection:
            while not self.stop.wait(max(0.0, due - time.monotonic())):
                due = max(due + self._every, time.monotonic() - 1)
                with connection.cursor() as cursor:
                    self._transaction(cursor, self._random.choice(NAMES))
                connection.commit()
                self.changes += INSERTS + UPDATES + DELETES

    def _transaction(self, cursor: Any, name: str) -> None:
        new, low = self._next[name], self._first[name]
        self._next[name], self._first[name] = new + INSERTS, low + DELETES
        rows = ", ".join(
            f"({new + n}, {new % 5000}, 'new', {new / 7:.2f}, 'note {new + n}', now(6), 1)"
            for n in range(INSERTS)
        )
        ids = ", ".join(map(str, self._random.sample(range(low + DELETES, new), UPDATES)))
        cursor.execute(f"INSERT INTO {name} VALUES {rows}")
        cursor.execute(
            f"UPDATE {name} SET amount = amount + 1, status = 'paid', at = now(6) WHERE id IN "
            f"({ids})"
        )
        cursor.execute(f"DELETE FROM {name} WHERE id BETWEEN {low} AND {low + DELETES - 1}")


def is_equal(server: SqlServer, target: Any, name: str) -> bool:
    """Whether target and source hold the same ids with the same amounts."""
    fields = ("id", "amount", "status")
    found = place.iceberg_table(target, DATABASE, name).scan(selected_fields=fields).to_arrow()
    there = sorted(zip(*(found.column(f).to_pylist() for f in fields), strict=True))
    return there == sorted(server.execute(f"SELECT id, amount, status FROM shop.{name}"))


def _peer(server: SqlServer, folder: Any, traffic: Traffic) -> Told:
    """Debezium's lag under the same traffic, measured for a quarter of the time."""
    wanted = {"table.include.list": f"bench.marks,{','.join(f'{DATABASE}.{n}' for n in NAMES)}"}
    properties = {**for_mysql(server.port, folder), **wanted}
    with debezium(properties, folder, server.execute) as peer:
        worker = threading.Thread(target=traffic.run)
        worker.start()
        told = peer.ask(events=1 << 60, lag_seconds=15 * minutes())
        traffic.stop.set()
        worker.join()
        return told


def measure(line: str) -> list[Result]:
    """Run five tables, traffic and the engine for some minutes."""
    options = {"max-binlog-size": "1G", "innodb-buffer-pool-size": "256M"}
    with place.folder(line) as folder, MysqlServer(options=options) as server:
        server.execute("CREATE DATABASE shop", "CREATE DATABASE bench",
                       "CREATE TABLE bench.marks (id bigint PRIMARY KEY)",
                       f"SET GLOBAL cte_max_recursion_depth = {2 * ROWS}")  # fmt: skip
        for name in NAMES:
            server.execute(DDL.format(name), FILL.format(name, ROWS))
        tables = [TableId(DATABASE, name) for name in NAMES]
        values = place.target_values(folder, namespace=DATABASE)
        target = place.target_params(folder, namespace=DATABASE)
        source = {"host": HOST, "port": server.port, "user": ADMIN, "password": PASSWORD}
        traffic = Traffic(server, RATE)
        worker = threading.Thread(target=traffic.run)
        with EngineRun(folder, source, values, tables, "mysql") as run:
            run.wait_replicating()
            worker.start()
            time.sleep(WARM_SECONDS)
            since, before, cpu = time.time(), traffic.changes, Cpu()
            time.sleep(60 * minutes())
            busy = cpu.share()
            until, rate = time.time(), (traffic.changes - before) / (60 * minutes())
            traffic.stop.set()
            worker.join()
            checked = catch_up(NAMES, lambda name: is_equal(server, target, name), run)
            by = {t.name: lags(run, target, t, since, until) for t in tables}
        apart = waited(target, since, until)
        traffic.stop.clear()
        told = _peer(server, folder, traffic)
    every = np.concatenate(list(by.values()))
    checked = checked and bool(np.isfinite(every).all()) and rate >= 0.9 * RATE
    p50, p99 = (float(np.percentile(every, p)) for p in (50, 99))
    note = (
        f"{len(every):,} changes in {minutes():g} minutes, {rate:.0f} a second over {len(NAMES)} "
        f"tables; largest {every.max():.1f} s. "
        f"{apart}; server, traffic and run had {100 * busy:.0f} % of the cores. Debezium's is "
        "the age of a "
        "batch's oldest record when it is handed over, in a later part of the same traffic; the "
        "ratio is Debezium's lag over ours."
    )  # fmt: skip
    return [
        _result(f"{line}-p50", p50, 5, told, told.lag_p50, checked, note),
        _result(f"{line}-p99", p99, 15, told, told.lag_p99, checked, note),
    ]


def waited(target: Any, since: float, until: float) -> str:
    """A text on what a change waits for: the time between a table's commits."""
    shown = [visible(target, name)[1] for name in NAMES]
    gaps = np.concatenate([np.diff(at[(at >= since) & (at <= until)]) for at in shown])
    if not len(gaps):
        return "There was no second commit of a table"
    return (
        f"A table's commits lay {np.median(gaps):.1f} s apart in the middle, {gaps.max():.1f} s "
        "at most, and a change waits for "
        "the one that is under way, then for its own"
    )


def _result(
    name: str, ours: float, target: float, told: Told, theirs: float | None, checked: bool,
    note: str
) -> Result:  # fmt: skip
    return Result(
        name, "s", round(ours, 2), target,
        (told.peer(None if theirs is None else round(theirs, 2), "Debezium, to nowhere"),),
        round(theirs / ours, 2) if theirs is not None else None,
        at_most=True, is_absolute=True, checked=checked, note=note,
    )  # fmt: skip
