"""Lines `merge-iceberg` and `merge-delta`: a few clustered keys into a large table. The peer is a
MERGE without key ranges."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from decimal import Decimal as PyDecimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import place
from benchmarks.report import Peer, Result
from benchmarks.resources import OURS, turn
from replicators.connectors.model.changes import OpCounts, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Boolean, Decimal, Int, String, Timestamp
from replicators.connectors.target import FoldedBatch, KeyRange, TargetTable
from runners.engine.fold.plan import fold_to_file
from runners.engine.tasks.on_spark import SparkTasks

TABLE = TableId("bench", "events")
KEYS = 1000
FILES = 40
WARM = 4
TRIES = 10_000
SHARED = "Memory is that of the JVM which both sides share."
_COLUMNS = (
    ("id", Int(64)),
    ("customer", Int(32)),
    ("status", String()),
    ("amount", Decimal(12, 2)),
    ("note", String()),
    ("at", Timestamp(zone=True)),
    ("ok", Boolean()),
)
SCHEMA = TableSchema(
    TABLE,
    tuple(Column(n, t, "", nullable=n != "id", ordinal=i + 1) for i, (n, t) in enumerate(_COLUMNS)),
    ("id",),
    ("id",),
)


def fill(spark: Any, writer: Any, rows: int, files: int = FILES) -> TargetTable:
    """A table of `rows` rows with even ids, clustered by id, written as a snapshot writes it."""
    from pyspark.sql import functions as F

    k = F.col("id")
    frame = spark.range(0, 2 * rows, 2, files).select(
        k,
        (k % 5000).cast("int").alias("customer"),
        F.lit("shipped").alias("status"),
        (k % 100000 / 100).cast("decimal(12,2)").alias("amount"),
        F.md5(k.cast("string")).alias("note"),
        F.timestamp_seconds(F.lit(1_735_689_600) + k).alias("at"),
        (k % 3 == 0).alias("ok"),
    )
    table = TargetTable(TABLE, "bench", 1)
    writer.begin_snapshot(table, SCHEMA)
    writer.load_snapshot(table, SCHEMA, frame)
    return replace(table, table_uuid=writer.publish_snapshot(table, SCHEMA, 1))


def changes(sequence: int, ids: list[int], mark: int) -> pa.Table:
    """Change rows. Of ten keys one is deleted (divisible by ten); the others are updated, or
    inserted where the id is odd."""
    rows = len(ids)
    schema = change_schema(SCHEMA)
    ops = [2 if i % 10 == 0 else i % 2 ^ 1 for i in ids]
    values: dict[str, Any] = {
        "_sequence": [(sequence << 32) + n for n in range(rows)],
        "_op": ops,
        "_committed_at": [time.time_ns() // 1000] * rows,
        "_transaction": [sequence] * rows,
        "_position": [sequence] * rows,
        "id": ids,
        "customer": [mark] * rows,
        "status": ["merged"] * rows,
        "amount": [PyDecimal("1.00")] * rows,
        "ok": [True] * rows,
    }
    columns = [
        pa.array(values[f.name], f.type) if f.name in values else pa.nulls(rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def batch(folder: Path, sequence: int, ids: list[int], mark: int) -> FoldedBatch:
    """The folded batch of these changes, as the engine makes it."""
    path = str(folder / f"{sequence}.parquet")
    part = fold_to_file(changes(sequence, ids, mark), SCHEMA, path)
    assert part.counts.rows == len(ids) and part.counts != OpCounts()
    ranges = tuple(KeyRange(low, high) for low, high in part.ranges)
    return FoldedBatch(
        SCHEMA, (path,), sequence << 32, part.rows, ranges=ranges, keys=tuple(part.keys)
    )


def window(random_: random.Random, rows: int) -> list[int]:
    """Ids close to each other: existing even ones and new odd ones."""
    low = random_.randrange(0, max(2 * rows - 3 * KEYS, 1))
    return sorted(random_.sample(range(low, low + 2 * KEYS), KEYS))


def read(target: Any, form: str, folder: str, ids: list[int], *, between: bool) -> pa.Table:
    """The rows with these ids, or also those between them, read without the engine: id, customer,
    is_merged."""
    if form == "iceberg":
        from pyiceberg.expressions import And, GreaterThanOrEqual, In, LessThanOrEqual

        low, high = GreaterThanOrEqual("id", ids[0]), LessThanOrEqual("id", ids[-1])
        where = And(low, high) if between else In("id", ids)
        fields = ("id", "customer", "status")
        found = (
            place.iceberg_table(target, "bench", "events")
            .scan(where, selected_fields=fields)
            .to_arrow()
        )
        return found.append_column("is_merged", pc.equal(found.column("status"), "merged"))
    from deltalake import DeltaTable, QueryBuilder

    which = f"BETWEEN {ids[0]} AND {ids[-1]}" if between else f"IN ({', '.join(map(str, ids))})"
    sql = f"SELECT id, customer, status = 'merged' AS is_merged FROM t WHERE id {which}"
    return pa.table(QueryBuilder().register("t", DeltaTable(folder)).execute(sql).read_all())


def is_right(found: pa.Table, ids: list[int], mark: int, rows: int, *, between: bool) -> bool:
    """Whether the rows read are exactly those that the merge should have left there."""
    there = set(found.column("id").to_pylist())
    gone = {i for i in ids if i % 10 == 0}
    around = range(ids[0], ids[-1] + 1) if between else ()
    old = {i for i in around if i % 2 == 0 and i < 2 * rows}
    is_marked = pc.and_(pc.equal(found.column("customer"), mark), found.column("is_merged"))
    marked = found.select(["id"]).filter(is_marked)
    is_whole = there == (old | set(ids)) - gone and found.num_rows == len(there)
    return is_whole and set(marked.column("id").to_pylist()) == set(ids) - gone


class Rounds:
    """Merges with and without the batch's key ranges, alternating, each at a place of its own in
    the table."""

    def __init__(self, writer: Any, target: Any, form: str, folder: Path, rows: int) -> None:
        self._writer = writer
        self._target = target
        self._form = form
        self._folder = folder
        self._rows = rows
        self._random = random.Random(1)
        self._sequence = 1
        self._used: set[int] = set()
        self.checked = True

    def _fresh(self, *, scattered: bool) -> list[int]:
        """Ids that no merge has used, and whose neighbours no merge has used."""
        for _ in range(TRIES):
            ids = (
                sorted(self._random.sample(range(2 * self._rows), KEYS))
                if scattered
                else window(self._random, self._rows)
            )
            if self._used.isdisjoint(ids):
                self._used.update(ids if scattered else range(ids[0], ids[-1] + 1))
                return ids
        raise ValueError(
            f"{self._rows:,} rows have no room for another merge: choose a larger BENCH_SCALE."
        )

    def once(self, table: TargetTable, *, pruned: bool, scattered: bool) -> float:
        """Do one merge; returns its seconds."""
        self._sequence += 1
        mark = self._sequence + 10_000
        ids = self._fresh(scattered=scattered)
        made = batch(self._folder, self._sequence, ids, mark)
        with turn(OURS if pruned else "plain"):
            began = time.monotonic()
            self._writer.merge(table, made if pruned else replace(made, ranges=(), keys=()))
            took = time.monotonic() - began
        place.logger.info("scattered %s, pruned %s: %.2f s", scattered, pruned, took)
        where = str(self._folder / "warehouse" / "bench" / "events")
        found = read(self._target, self._form, where, ids, between=not scattered)
        right = is_right(found, ids, mark, self._rows, between=not scattered)
        self.checked = self.checked and right
        return took

    def compare(self, table: TargetTable, *, scattered: bool) -> tuple[float, float]:
        """Median seconds with ranges and without."""
        seconds: dict[bool, list[float]] = {True: [], False: []}
        warm = 1 if scattered else WARM
        for number in range(2 * (place.ROUNDS + warm)):
            pruned = number % 2 == 0
            seconds[pruned].append(self.once(table, pruned=pruned, scattered=scattered))
        return place.median(seconds[True][warm:]), place.median(seconds[False][warm:])


def measure(line: str) -> list[Result]:
    """Clustered keys, then scattered ones, into the same table."""
    form = line.removeprefix("merge-")
    rows = place.scaled(10_000_000, FILES)
    with place.folder(line) as folder:
        target = place.target_params(folder, form)
        with place.spark(folder, target) as spark:
            writer = place.TARGET.writer(target, SparkTasks(spark))
            table = fill(spark, writer, rows)
            place.logger.info("the table of %d rows is there", rows)
            rounds = Rounds(writer, target, form, folder, rows)
            ours, plain = rounds.compare(table, scattered=False)
            checked = rounds.checked
            wide, wide_plain = rounds.compare(table, scattered=True)
    what = (
        f"{rows:,} rows in {FILES} files; the ratio is the plain MERGE's time over ours. {SHARED}"
    )
    return [
        Result(
            line,
            "s a merge",
            round(ours, 3),
            4,
            (Peer("MERGE without key ranges", round(plain, 3)),),
            round(plain / ours, 2),
            checked=checked,
            note=f"{KEYS} keys within {2 * KEYS}, {what} Our time is planning, compiling and "
            "commit, hardly rows; both sides run in one JVM, which compiles in full, not "
            "as the engine ships (C1 only).",
        ),
        Result(
            f"{line}-scattered",
            "s a merge",
            round(wide, 3),
            0.9,
            (Peer("MERGE without key ranges", round(wide_plain, 3)),),
            round(wide_plain / wide, 2),
            checked=rounds.checked,
            note=f"{KEYS} keys anywhere, {what} Every file holds some of them, so all are read: "
            "nothing but a layout by "
            "buckets could spare that, and it would cost the clustered case.",
        ),
    ]
