"""Lines `snapshot` and `snapshot-mysql`: our first copy of a table. The peers are Spark's own JDBC
reader into the same kind of table, and dlt, sling and ingestr into Parquet files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.copied import TABLE, Copied, mysql, postgresql, sums
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu, turn
from benchmarks.snapshot_programs import copy_by_dlt, copy_by_programs
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.target import TargetPlugin, TargetTable
from runners.engine.decode.job import load as load_object
from runners.engine.snapshot.chunks import Snapshotter
from runners.engine.store.protocol import MemoryStore
from runners.engine.tasks.on_spark import SparkTasks

DLT = "dlt writes Parquet files and no table, its clock begins after its imports"
PROGRAMS = (
    "sling and ingestr write one Parquet file and no table, their clocks run from the "
    "start of the process to its end"
)
PARTITIONS = 2  # the fastest of 2, 3 and 4 on two cores


def copy(
    spark: Any, folder: Path, target: Any, made: Copied, schema: TableSchema, number: int,
    plugin: TargetPlugin = place.TARGET,
) -> float:  # fmt: skip
    """Our copy: consistent snapshot, chunks, staging and publishing; returns the seconds of all of
    that."""
    table = TargetTable(TABLE, "bench", number + 1)
    writer = plugin.writer(target, SparkTasks(spark))
    began = time.monotonic()
    with made.source.snapshot_again(made.params, f"bench_{number}") as session:
        reader = load_object(made.source.chunk_reader)(made.params, session.point.token)
        snapshotter = Snapshotter(
            SparkTasks(spark), writer, session, reader, place.settings(folder), MemoryStore([TABLE])
        )
        assert snapshotter.copy(table, schema, 1) is not None
    return time.monotonic() - began


def copy_by_jdbc(spark: Any, target: Any, made: Copied, rows: int, name: str) -> float:
    """Copy by Spark's reader, partitioned by the key, into an Iceberg table with the same
    properties; returns its seconds."""
    from replicators.targets.lakehouse.iceberg import PROPERTIES

    began = time.monotonic()
    frame = spark.read.jdbc(
        made.jdbc,
        "bench.events",
        column="id",
        lowerBound=1,
        upperBound=rows + 1,
        numPartitions=PARTITIONS,
        properties={"fetchsize": "10000", **made.jdbc_properties},
    )
    writer = frame.writeTo(f"{target.catalog_name}.bench.{name}").using("iceberg")
    for key, value in PROPERTIES.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    return time.monotonic() - began


def sums_at(target: Any, name: str) -> tuple[int, ...]:
    """Checksums of a target table, read without the engine."""
    return sums(place.iceberg_table(target, "bench", name).scan().to_arrow())


def measure(line: str) -> list[Result]:
    """Rounds of the peer and of ours, alternating. The first pair warms up and does not count.
    dlt's turn comes at the end, alone."""
    rows = place.scaled(4_000_000, 1000)
    ours, theirs, checked = [], [], True
    with ExitStack() as stack:
        folder = stack.enter_context(place.folder(line))
        made = stack.enter_context((mysql if line == "snapshot-mysql" else postgresql)(rows))
        target, schema, right = place.target_params(folder), made.describe(), made.sums()
        with place.spark(folder, target, made.driver_jar) as spark:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {target.catalog_name}.bench")
            for number in range(place.ROUNDS):
                theirs.append(copy_by_jdbc(spark, target, made, rows, "peer"))
                cpu = Cpu()
                with turn():
                    ours.append(copy(spark, folder, target, made, schema, number))
                spent = cpu.said()
                place.logger.info("theirs %.2f s, ours %.2f s: %s", theirs[-1], ours[-1], spent)
                checked = checked and sums_at(target, "peer") == right == sums_at(target, "events")
                for name in ("peer", "events"):
                    spark.sql(f"DROP TABLE {target.catalog_name}.bench.{name} PURGE")
        by_dlt = copy_by_dlt(folder, made, right)
        by_programs = copy_by_programs(folder, made, right)
    jdbc = _result(line, rows, ours, theirs, checked, spent)
    return [
        jdbc,
        _beside(jdbc, "dlt", by_dlt, 1.5, DLT),
        _beside(jdbc, "others", by_programs, None, PROGRAMS),
    ]


def _result(
    line: str, rows: int, ours: list[float], theirs: list[float], checked: bool, spent: str
) -> Result:  # fmt: skip
    mine, peer = (rows / place.median(v[1:] or v) for v in (ours, theirs))
    ratio = place.median(
        [t / o for o, t in zip(ours[1:] or ours, theirs[1:] or theirs, strict=True)]
    )
    shown = [", ".join(f"{v:.1f}" for v in values) for values in (ours, theirs)]
    return Result(
        line, "rows/s", round(mine), 2.5, (Peer("Spark JDBC", round(peer)),), round(ratio, 2),
        checked=checked,
        note=f"{rows:,} rows; seconds: ours {shown[0]}; Spark's JDBC reader {shown[1]} (the "
             "first of each warms up). CPU seconds of "
        f"ours: {spent}. Memory is that of the JVM which both share, and of our workers.",
    )  # fmt: skip


def _beside(
    ours: Result, part: str, peers: Sequence[Peer], target: float | None, what: str
) -> Result:
    """Our figure compared with programs that run once, at the end."""
    best = max((p.value for p in peers if p.value), default=None)
    return Result(
        f"{ours.line}-{part}", ours.unit, ours.ours, target, tuple(peers),
        round(ours.ours / best, 2) if best else None,
        checked=ours.checked,
        note=f"{what}, once, alone; a figure is given only where the files hold what the source "
             "holds, each column by itself and "
        "together with the key. The ratio is to the best of them.",
    )  # fmt: skip
