"""Line `executors`: two of Spark's executors against one, each with one core, as on a cluster
(`local-cluster`): processes of their own, which get everything over the network. All of them share
this machine's cores with the server and the driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.capture import SERVER, Taken, is_right
from benchmarks.copied import postgresql
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu
from benchmarks.snapshot import copy, sums_at
from benchmarks.workload import Workload
from demo.postgres import EmbeddedPostgres
from runners.engine.decode.job import decode_segments, task_for
from runners.engine.tasks.on_spark import SparkTasks

COUNTS = (1, 2)
ROUNDS = 3
MEGABYTES = 1024
TARGET = 1.7


@contextmanager
def cluster(folder: Path, target: Any, executors: int, *jars: str) -> Iterator[Any]:
    """A session with so many executors."""
    master = f"local-cluster[{executors},1,{MEGABYTES}]"
    with place.spark(folder, target, *jars, spark_master=master) as session:
        yield session


def measure(line: str) -> list[Result]:
    """Each number of executors has its session. The first round of each warms up."""
    with place.folder(line) as folder:
        return [_decode(f"{line}-decode", folder), _snapshot(f"{line}-snapshot", folder)]


def _decode(line: str, folder: Path) -> Result:
    """Decode the same segments again and again; the server is stopped meanwhile."""
    with EmbeddedPostgres(fsync=False, options=SERVER) as server:
        load = Workload(server, 1).make()
        taken = Taken(load.stream("ours_0"), folder).run()
    target = place.target_params(folder)
    seconds: dict[int, list[float]] = {n: [] for n in COUNTS}
    shares, checked = {}, True
    for executors in COUNTS:
        with cluster(folder, target, executors) as spark:
            for number in range(ROUNDS):
                out = folder / f"{executors}-{number}"
                out.mkdir()
                tasks = [task_for(s, str(out / str(s.number))) for s in taken.segments]
                cpu, began = Cpu(), time.monotonic()
                done = decode_segments(SparkTasks(spark), tasks, place.SOURCE.log.decoder)
                seconds[executors].append(time.monotonic() - began)
                shares[executors] = cpu.share()
            checked = checked and is_right([f.path for f in done.files], load)
    return _result(line, "row changes/s", load.changes, seconds, shares, checked=checked)


def _snapshot(line: str, folder: Path) -> Result:
    """Copy a table again and again, from a server that works meanwhile."""
    rows = place.scaled(1_000_000, 1000)
    seconds: dict[int, list[float]] = {n: [] for n in COUNTS}
    shares, checked = {}, True
    with postgresql(rows) as made:
        target, schema, right = place.target_params(folder), made.describe(), made.sums()
        for executors in COUNTS:
            with cluster(folder, target, executors, made.driver_jar) as spark:
                spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {target.catalog_name}.bench")
                for number in range(ROUNDS):
                    cpu = Cpu()
                    seconds[executors].append(
                        copy(spark, folder, target, made, schema, executors * 100 + number)
                    )
                    shares[executors] = cpu.share()
                    checked = checked and sums_at(target, "events") == right
                    spark.sql(f"DROP TABLE {target.catalog_name}.bench.events PURGE")
    return _result(line, "rows/s", rows, seconds, shares, checked=checked)


def _result(
    line: str, unit: str, rows: int, seconds: dict[int, list[float]], shares: dict[int, float],
    *, checked: bool,
) -> Result:  # fmt: skip
    one, two = (rows / place.median(seconds[n][1:]) for n in COUNTS)
    shown = [", ".join(f"{v:.1f}" for v in seconds[n]) for n in COUNTS]
    return Result(
        line, unit, round(two), TARGET, (Peer("one executor", round(one)),), round(two / one, 2),
        checked=checked,
        note=f"{rows:,} rows; seconds: two executors {shown[1]}; one {shown[0]} (the first of each "
        f"warms up). One executor kept the machine's cores busy by {shares[1]:.0%}, two by "
        f"{shares[2]:.0%}: server, driver and executors are on one machine.",
    )  # fmt: skip
