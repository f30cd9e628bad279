"""Line `backlog`: 1.6 million changes wait in PostgreSQL's log while the run stands still; from its going on until the last of them
is in the lakehouse. Beside it, the usual way with Spark: change events through `foreachBatch` and MERGE."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import place
from benchmarks.capture import SERVER, Taken
from benchmarks.report import Peer, Result
from benchmarks.run import EngineRun
from benchmarks.workload import TABLE, Workload
from demo.postgres import EmbeddedPostgres

OPTIONS = {**SERVER, "wal_sender_timeout": "0"}
BATCHES = 8
EVENT = "op STRING, lsn BIGINT, id BIGINT, customer INT, status STRING, amount DECIMAL(12,2), note STRING, at TIMESTAMP, ok BOOLEAN"
COLUMNS = ("id", "customer", "status", "amount", "note", "at", "ok")
LIMIT_SECONDS = 600.0


def sums(target: Any, name: str) -> tuple[int, ...]:
    """Rows and sums of a table at the target, the last small change left out."""
    table = place.iceberg_table(target, "bench", name).scan().to_arrow()
    table = table.filter(pc.greater(table.column("id"), 0))
    cents = pc.sum(table.column("amount").cast(pa.decimal128(20, 2))).as_py() or 0
    returned = pc.sum(pc.equal(table.column("status"), "returned")).as_py() or 0
    return table.num_rows, pc.sum(table.column("id")).as_py() or 0, int(cents * 100), returned


def source_sums(server: EmbeddedPostgres) -> tuple[int, ...]:
    """The same of the source."""
    (row,) = server.execute(
        "SELECT count(*), sum(id), (sum(amount) * 100)::bigint, count(*) FILTER (WHERE status = 'returned')"
        " FROM bench.events WHERE id > 0"
    )
    return tuple(int(v or 0) for v in row)


def measure(line: str) -> list[Result]:
    """Ours, then the peer on the same changes."""
    with place.folder(line) as folder:
        return [_measured(line, folder)]


def _measured(line: str, folder: Path) -> Result:
    with EmbeddedPostgres(fsync=False, options=OPTIONS) as server:
        load = Workload(server, 1).prepare()
        values = place.target_values(folder)
        target = place.target_params(folder)
        with EngineRun(folder, server.params(), values, [TABLE]) as run:
            run.wait_replicating()
            server.execute("INSERT INTO bench.events (id) VALUES (-2)")
            run.wait(lambda s: s["events"]["rows"] >= 1)
            run.hold()
            load.change()
            began = time.monotonic()
            run.go_on()
            wanted = load.changes + 2
            run.wait(lambda s: s["events"]["rows"] >= wanted, LIMIT_SECONDS)
            seconds = time.monotonic() - began
        right = source_sums(server)
        checked = sums(target, "events") == right
        place.logger.info("ours %.1f s, right %s", seconds, checked)
        taken = Taken(load.stream("ours_0"), folder / "taken").run()
    peer = _for_each_batch(folder, target, taken.paths())
    checked = checked and sums(target, "peer") == right
    mine, theirs = load.changes / seconds, load.changes / peer
    return Result(
        line,
        "row changes/s",
        round(mine),
        10,
        (Peer("foreachBatch MERGE", round(theirs)),),
        round(mine / theirs, 2),
        checked=checked,
        note=f"{seconds:.1f} s from going on to the last change in the table, read from the log, decoded and merged (wanted: "
        f"150,000 a second); the peer's {peer:.1f} s begin with its events lying in JSON files, in {BATCHES} micro-batches, "
        "on a JVM that compiles in full; reading the log and making events of it is not counted for it.",
    )


def _for_each_batch(folder: Path, target: Any, paths: list[str]) -> float:
    """The peer: seconds for all events, which lie in files."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    from replicators.targets.lakehouse.iceberg import PROPERTIES

    events, name = folder / "events", f"{target.catalog_name}.bench.peer"
    with place.spark(folder, target) as spark:
        spark.conf.set("spark.sql.streaming.schemaInference", "false")
        op = "CASE _op WHEN 0 THEN 'c' WHEN 1 THEN 'u' ELSE 'd' END AS op"
        made = spark.read.parquet(*paths).selectExpr(op, "_sequence AS lsn", *COLUMNS)
        made.repartitionByRange(BATCHES, "lsn").write.json(str(events))
        for path in sorted(events.glob("*.json")):
            path.rename(events / f"{path.name.split('-')[1]}.json")
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, customer INT, status STRING, amount DECIMAL(12,2), note STRING,"
            f" at TIMESTAMP, ok BOOLEAN) USING iceberg TBLPROPERTIES ("
            + ", ".join(f"'{k}' = '{v}'" for k, v in PROPERTIES.items())
            + ")"
        )
        newest = Window.partitionBy("id").orderBy(F.col("lsn").desc())

        def merge(batch: Any, _: int) -> None:
            last = batch.withColumn("n", F.row_number().over(newest)).where("n = 1").drop("n")
            last.createOrReplaceTempView("changes")
            batch.sparkSession.sql(
                f"MERGE INTO {name} t USING changes s ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE"
                f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in COLUMNS)}"
                f" WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(COLUMNS)})"
                f" VALUES ({', '.join(f's.{c}' for c in COLUMNS)})"
            )

        began = time.monotonic()
        query = (
            spark.readStream.schema(EVENT)
            .option("maxFilesPerTrigger", 1)
            .json(str(events))
            .writeStream.foreachBatch(merge)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return time.monotonic() - began
