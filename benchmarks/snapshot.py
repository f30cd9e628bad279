"""Line `snapshot`: our first copy of a table, beside Spark's own JDBC reader into the same kind of table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from benchmarks import place
from benchmarks.report import Peer, Result
from demo.postgres import EmbeddedPostgres
from replicators.connectors.schema import TableId, TableSchema
from replicators.connectors.target import TargetTable
from runners.engine.decode import load as load_object
from runners.engine.snapshot import Snapshotter
from runners.engine.store import MemoryStore

TABLE = TableId("bench", "events")
PARTITIONS = 2  # of 2, 3 and 4 the fastest on two cores
DDL = """
CREATE SCHEMA bench;
CREATE TABLE bench.events (
    id bigint PRIMARY KEY, customer int, status text, amount numeric(12, 2), note text,
    at timestamptz, ok boolean);
INSERT INTO bench.events
SELECT k, k % 5000, 'shipped', (k * 37 % 100000) / 100.0, 'note ' || k || ' for this row',
       timestamptz '2025-01-01 00:00Z' + k * interval '1 second', k % 3 = 0
FROM generate_series(1, {rows}) k;
"""


def copy(
    spark: Any, folder: Path, target: Any, params: Any, schema: TableSchema, number: int
) -> float:
    """Ours: a consistent view, chunks by COPY, staged and published; its seconds with all of that."""
    table = TargetTable(TABLE, "bench", number + 1)
    writer = place.TARGET.writer(target, spark)
    began = time.monotonic()
    with place.SOURCE.snapshot_again(params, f"bench_{number}") as session:
        reader = load_object(place.SOURCE.chunk_reader)(params, session.point.token)
        snapshotter = Snapshotter(
            spark, writer, session, reader, place.settings(folder), MemoryStore([TABLE])
        )
        assert snapshotter.copy(table, schema, 1) is not None
    return time.monotonic() - began


def copy_by_jdbc(spark: Any, target: Any, params: Any, rows: int, name: str) -> float:
    """Spark's reader, partitioned by the key, into an Iceberg table with the same properties; its seconds."""
    from replicators.targets.lakehouse.iceberg import PROPERTIES

    began = time.monotonic()
    frame = spark.read.jdbc(
        f"jdbc:postgresql://{params.host}:{params.port}/{params.database}",
        "bench.events",
        column="id",
        lowerBound=1,
        upperBound=rows + 1,
        numPartitions=PARTITIONS,
        properties={
            "user": params.user,
            "password": params.password,
            "fetchsize": "10000",
            "driver": "org.postgresql.Driver",
        },
    )
    writer = frame.writeTo(f"{target.catalog_name}.bench.{name}").using("iceberg")
    for key, value in PROPERTIES.items():
        writer = writer.tableProperty(key, value)
    writer.create()
    return time.monotonic() - began


def sums(target: Any, name: str) -> tuple[int, ...]:
    """Rows, and sums of what every column holds, read from outside."""
    table = place.iceberg_table(target, "bench", name).scan().to_arrow()
    cents = pc.sum(table.column("amount")).as_py()
    seconds = pc.sum(pc.floor(pc.divide(table.column("at").cast("int64"), 1_000_000))).as_py()
    whole = [pc.sum(table.column(n)).as_py() for n in ("id", "customer", "ok")]
    shipped = pc.sum(pc.equal(table.column("status"), "shipped")).as_py()
    notes = table.column("note")
    digits = pc.cast(pc.replace_substring_regex(notes, "[^0-9]", ""), "int64")
    chars = pc.sum(pc.utf8_length(notes)).as_py()
    of_notes = [pc.sum(digits).as_py(), chars]
    return table.num_rows, *whole, shipped, *of_notes, int(cents * 100), int(seconds)


def source_sums(server: EmbeddedPostgres) -> tuple[int, ...]:
    """The same of the source."""
    (row,) = server.execute(
        "SELECT count(*), sum(id), sum(customer), sum(ok::int), count(*) FILTER (WHERE status ="
        " 'shipped'), sum(regexp_replace(note, '[^0-9]', '', 'g')::bigint), sum(length(note)),"
        " (sum(amount) * 100)::bigint, sum(extract(epoch FROM at))::bigint FROM bench.events"
    )
    return tuple(int(v) for v in row)


def measure(line: str) -> list[Result]:
    """Rounds of theirs and ours in turn; the first pair warms up and does not count."""
    rows = place.scaled(4_000_000, 1000)
    ours, theirs, checked = [], [], True
    with place.folder(line) as folder, EmbeddedPostgres(fsync=False) as server:
        server.execute(DDL.format(rows=rows))
        server.execute("VACUUM ANALYZE")
        params, target = place.source_params(server), place.target_params(folder)
        (schema,) = place.describe(params, TABLE)
        right = source_sums(server)
        with place.spark(folder, target, "postgresql") as spark:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {target.catalog_name}.bench")
            for number in range(place.ROUNDS):
                theirs.append(copy_by_jdbc(spark, target, params, rows, "peer"))
                ours.append(copy(spark, folder, target, params, schema, number))
                place.logger.info("theirs %.2f s, ours %.2f s", theirs[-1], ours[-1])
                checked = checked and sums(target, "peer") == right == sums(target, "events")
                for name in ("peer", "events"):
                    spark.sql(f"DROP TABLE {target.catalog_name}.bench.{name} PURGE")
    mine, peer = (rows / place.median(v[1:] or v) for v in (ours, theirs))
    ratio = place.median(
        [t / o for o, t in zip(ours[1:] or ours, theirs[1:] or theirs, strict=True)]
    )
    shown = [", ".join(f"{v:.1f}" for v in values) for values in (ours, theirs)]
    return [
        Result(
            line,
            "rows/s",
            round(mine),
            2.5,
            (Peer("Spark JDBC", round(peer)),),
            round(ratio, 2),
            checked=checked,
            note=f"{rows:,} rows; seconds: ours {shown[0]}; Spark's JDBC reader {shown[1]} (the first of each warms up).",
        )
    ]
