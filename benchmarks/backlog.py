"""Line `backlog`: 1.6 million row events wait in MySQL's log while the run stands still. The line
measures from the run's continuation until the last event is in the lakehouse. The peer is the usual
way with Spark: Debezium's events through `foreachBatch` and MERGE."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from benchmarks import place
from benchmarks.binlog import TABLE, BinlogLoad, sums, sums_of
from benchmarks.capture import Taken
from benchmarks.debezium import MARKS, debezium, for_mysql
from benchmarks.report import Peer, Result
from benchmarks.resources import gib_of, turn
from benchmarks.run import EngineRun
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MysqlServer

OPTIONS = {"max-binlog-size": "1G", "innodb-buffer-pool-size": "256M"}
BATCHES = 8
TYPES = {
    "id": "BIGINT", "n": "INT", "name": "STRING", "price": "DECIMAL(12,2)", "note": "STRING",
    "at": "TIMESTAMP_NTZ", "seen": "TIMESTAMP",
}  # fmt: skip
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
BATCHED = "Debezium, then foreachBatch MERGE"
LIMIT_SECONDS = 600.0


def measure(line: str) -> list[Result]:
    """Ours, then the peer on the same changes."""
    with place.folder(line) as folder:
        return [_measured(line, folder)]


def _measured(line: str, folder: Path) -> Result:
    with MysqlServer(options=OPTIONS) as server:
        load = BinlogLoad(server).prepare()
        server.execute(MARKS)
        target = place.target_params(folder)
        with debezium(for_mysql(server.port, folder), folder, server.execute) as peer:
            seconds = drained(server, load, folder)
            right = sums_of(server)
            checked = _sums(target, "events") == right
            place.logger.info("ours %.1f s, right %s", seconds, checked)
            told = peer.ask(events=load.changes)
        paths = Taken(load.stream(), folder / "taken").run().paths()
    merging = _for_each_batch(folder, target, paths)
    checked = checked and _sums(target, "peer") == right
    mine, theirs = load.changes / seconds, None
    said = f"not known, for Debezium is {told.missing}; there are"
    if told.seconds:
        theirs = load.changes / (told.seconds + merging)
        said = (
            f"Debezium's {told.seconds:.1f} s, in which its events are counted and thrown away, and"
        )
    memory = max((m for m in (told.memory_gib, gib_of(BATCHED)) if m), default=None)
    return Result(
        line,
        "row changes/s",
        round(mine),
        10,
        (Peer(BATCHED, theirs and round(theirs), memory, told.missing),),
        round(mine / theirs, 2) if theirs else None,
        checked=checked,
        note=f"{seconds:.1f} s from going on to the last change in the table, read from the log, "
        "decoded and merged (wanted: "
        f"150,000 a second). The peer's time is {said} {merging:.1f} s from the same events in "
        "JSON files into the table, in "
        f"{BATCHES} micro-batches, on a JVM that compiles in full; one after the other, since "
        "two cores have room for one. Each ran once; Debezium's "
        "events were counted, and the rows compared are those of the two tables.",
    )


def _sums(target: Any, name: str) -> tuple[int, ...]:
    return sums(place.iceberg_table(target, "bench", name).scan().to_arrow())


def drained(server: MysqlServer, load: BinlogLoad, folder: Path, **where: Any) -> float:
    """Seconds from the run's continuation until the load's changes are in the table. `where`:
    fields of the target beside the usual ones."""
    source = {"host": HOST, "port": server.port, "user": ADMIN, "password": PASSWORD}
    values = place.target_values(folder, **where)
    with EngineRun(folder, source, values, [TABLE], "mysql") as run:
        run.wait_replicating()
        server.execute("INSERT INTO bench.events (id) VALUES (-2)")
        run.wait(lambda s: s["events"]["rows"] >= 1)
        run.hold()
        load.change()
        began = time.monotonic()
        run.go_on()
        wanted = load.changes + 2
        run.wait(lambda s: s["events"]["rows"] >= wanted, LIMIT_SECONDS)
        return time.monotonic() - began


def as_text() -> list[str]:
    """The columns in their form for JSON: times are text, since Spark writes them to JSON with
    milliseconds only."""
    return [
        f"CAST({name} AS STRING) AS {name}" if kind.startswith("TIMESTAMP") else name
        for name, kind in TYPES.items()
    ]


def in_turn(events: Path) -> None:
    """Set the files' times in the order of their names, which is the log's order. Spark's stream
    takes the oldest file first, and two tasks may end in the other order."""
    for number, path in enumerate(sorted(events.glob("*.json"))):
        os.utime(path, (number + 1, number + 1))


def _for_each_batch(folder: Path, target: Any, paths: list[str]) -> float:
    """Run the peer; returns its seconds for all events, which lie in files."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    from replicators.targets.lakehouse.iceberg import PROPERTIES

    events, name = folder / "events", f"{target.catalog_name}.bench.peer"
    with place.spark(folder, target) as spark:
        spark.conf.set("spark.sql.streaming.schemaInference", "false")
        op = "CASE _op WHEN 0 THEN 'c' WHEN 1 THEN 'u' ELSE 'd' END AS op"
        made = spark.read.parquet(*paths).selectExpr(op, "_sequence AS lsn", *as_text())
        made.repartitionByRange(BATCHES, "lsn").write.json(str(events))
        in_turn(events)
        properties = ", ".join(f"'{k}' = '{v}'" for k, v in PROPERTIES.items())
        spark.sql(f"CREATE TABLE {name} ({SCHEMA}) USING iceberg TBLPROPERTIES ({properties})")
        newest = Window.partitionBy("id").orderBy(F.col("lsn").desc())

        def merge(batch: Any, _: int) -> None:
            last = batch.withColumn("nth", F.row_number().over(newest)).where("nth = 1").drop("nth")
            last.createOrReplaceTempView("changes")
            batch.sparkSession.sql(
                f"MERGE INTO {name} t USING changes s ON t.id = s.id WHEN MATCHED AND s.op = 'd' "
                "THEN DELETE"
                f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in TYPES)}"
                f" WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(TYPES)})"
                f" VALUES ({', '.join(f's.{c}' for c in TYPES)})"
            )

        with turn(BATCHED):
            began = time.monotonic()
            query = (
                spark.readStream.schema(f"op STRING, lsn BIGINT, {SCHEMA}")
                .option("maxFilesPerTrigger", 1)
                .json(str(events))
                .writeStream.foreachBatch(merge)
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            return time.monotonic() - began
