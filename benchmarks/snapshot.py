"""Lines `snapshot` and `snapshot-mysql`: our first copy of a table, beside Spark's own JDBC reader into the same kind of table and
dlt into Parquet files."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from benchmarks import place
from benchmarks.copied import TABLE, Copied, mysql, postgresql
from benchmarks.peers.environments import talk
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu
from replicators.connectors.schema import TableSchema
from replicators.connectors.target import TargetTable
from runners.engine.decode import load as load_object
from runners.engine.snapshot import Snapshotter
from runners.engine.store import MemoryStore
from setup.machine import Missing

PARTITIONS = 2  # of 2, 3 and 4 the fastest on two cores
BACKENDS = ("pyarrow", "connectorx")


def copy(
    spark: Any, folder: Path, target: Any, made: Copied, schema: TableSchema, number: int
) -> float:
    """Ours: a view, chunks, staged and published; its seconds with all of that."""
    table = TargetTable(TABLE, "bench", number + 1)
    writer = place.TARGET.writer(target, spark)
    began = time.monotonic()
    with made.source.snapshot_again(made.params, f"bench_{number}") as session:
        reader = load_object(made.source.chunk_reader)(made.params, session.point.token)
        snapshotter = Snapshotter(
            spark, writer, session, reader, place.settings(folder), MemoryStore([TABLE])
        )
        assert snapshotter.copy(table, schema, 1) is not None
    return time.monotonic() - began


def copy_by_jdbc(spark: Any, target: Any, made: Copied, rows: int, name: str) -> float:
    """Spark's reader, partitioned by the key, into an Iceberg table with the same properties; its seconds."""
    from replicators.targets.lakehouse.iceberg import PROPERTIES

    began = time.monotonic()
    frame = spark.read.jdbc(
        made.jdbc,
        "bench.events",
        column="id",
        lowerBound=1,
        upperBound=rows + 1,
        numPartitions=PARTITIONS,
        properties={**made.jdbc_properties, "fetchsize": "10000"},
    )
    writer = frame.writeTo(f"{target.catalog_name}.bench.{name}").using("iceberg")
    for key, value in PROPERTIES.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    return time.monotonic() - began


def copy_by_dlt(folder: Path, made: Copied, rows: int) -> dict[str, float]:
    """Rows a second of each of dlt's backends; empty where it could not be installed."""
    rates: dict[str, float] = {}
    for backend in BACKENDS:
        place_ = folder / f"dlt_{backend}"
        place_.mkdir()
        more = {"backend_kwargs": made.connectorx} if backend == "connectorx" else {}
        try:
            with talk("dlt", "dlt_copy", place_) as peer:
                peer.say(
                    url=made.url, schema="bench", table="events", backend=backend, folder=str(place_), **more
                )  # fmt: skip
                told = peer.hear()
        except (Missing, RuntimeError) as err:
            place.logger.warning("dlt with %s: %s %s", backend, err, _tail(place_ / "dlt.log"))
            continue
        place.logger.info("dlt with %s: %s", backend, told)
        if told["rows"] == rows:
            rates[backend] = rows / told["seconds"]
        shutil.rmtree(place_)
    return rates


def _tail(path: Path) -> str:
    return path.read_text(errors="replace")[-2000:] if path.exists() else ""


def sums(target: Any, name: str) -> tuple[int, ...]:
    """Rows, and sums of what every column holds, read from outside."""
    table = place.iceberg_table(target, "bench", name).scan().to_arrow()
    cents = pc.sum(table.column("amount")).as_py()
    at = table.column("at")
    seconds = pc.sum(pc.floor(pc.divide(at.cast("int64"), 1_000_000))).as_py()
    whole = [pc.sum(table.column(n).cast("int64")).as_py() for n in ("id", "customer", "ok")]
    shipped = pc.sum(pc.equal(table.column("status"), "shipped")).as_py()
    notes = table.column("note")
    digits = pc.cast(pc.replace_substring_regex(notes, "[^0-9]", ""), "int64")
    chars = pc.sum(pc.utf8_length(notes)).as_py()
    of_notes = [pc.sum(digits).as_py(), chars]
    return table.num_rows, *whole, shipped, *of_notes, int(cents * 100), int(seconds)


def measure(line: str) -> list[Result]:
    """Rounds of theirs and ours in turn; the first pair warms up and does not count. dlt's turn is at the end, alone."""
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
                ours.append(copy(spark, folder, target, made, schema, number))
                spent = cpu.said()
                place.logger.info("theirs %.2f s, ours %.2f s: %s", theirs[-1], ours[-1], spent)
                checked = checked and sums(target, "peer") == right == sums(target, "events")
                for name in ("peer", "events"):
                    spark.sql(f"DROP TABLE {target.catalog_name}.bench.{name} PURGE")
        others = copy_by_dlt(folder, made, rows)
    return _results(line, rows, ours, theirs, others, checked, spent)


def _results(
    line: str, rows: int, ours: list[float], theirs: list[float], others: dict[str, float], checked: bool,
    spent: str,
) -> list[Result]:  # fmt: skip
    mine, peer = (rows / place.median(v[1:] or v) for v in (ours, theirs))
    ratio = place.median(
        [t / o for o, t in zip(ours[1:] or ours, theirs[1:] or theirs, strict=True)]
    )
    shown = [", ".join(f"{v:.1f}" for v in values) for values in (ours, theirs)]
    jdbc = Result(
        line, "rows/s", round(mine), 2.5, (Peer("Spark JDBC", round(peer)),), round(ratio, 2), checked=checked,
        note=f"{rows:,} rows; seconds: ours {shown[0]}; Spark's JDBC reader {shown[1]} (the first of each warms up). CPU seconds of ours: {spent}.",
    )  # fmt: skip
    best = max(others.values(), default=None)
    beside = Result(
        f"{line}-dlt", "rows/s", round(mine), 1.5,
        tuple(Peer(f"dlt {name}", round(rate)) for name, rate in others.items()),
        round(mine / best, 2) if best else None, checked=checked and best is not None,
        note="dlt writes Parquet files and no table; the ratio is to its best backend."
        if best
        else "dlt could not be installed, or its rows were not all there.",
    )  # fmt: skip
    return [jdbc, beside]
