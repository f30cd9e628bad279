"""The JVM's archive of classes: Spark's and the tables' classes, read, verified and laid out once
at set-up, so that no start of a run does it again. A start in which three tables are merged took 22
to 25 CPU seconds of the JVM without it and 16 with it.

`python -m runners.engine.tasks.class_sharing` makes it by a rehearsal: each target's own writer
copies and merges a throw-away table. The mechanism is Java's dynamic class data sharing (JEP 350).
An archive of another Java or of other jars is passed over by the JVM without a word, and the run
only starts as slowly as before."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from replicators.connectors import registry
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.target import (
    FoldedBatch,
    KeyRange,
    Maintained,
    MergeTarget,
    TargetTable,
)
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.on_spark import SparkTasks
from runners.engine.tasks.spark import QUIET_SHARING, class_archive, open_session

EXIT_SECONDS = 600.0
_ROWS = 100
_MERGES = 3
_SCHEMA = TableSchema(
    TableId("rehearsal", "rows"),
    (
        Column("id", Int(64), "bigint", nullable=False, ordinal=1),
        Column("name", String(), "text", ordinal=2),
    ),
    ("id",),
    ("id",),
)


def make(jars_dir: str) -> Path:
    """Rehearse every target and keep the classes that were loaded. The archive appears whole or not
    at all: half an archive crashes the JVM."""
    archive = class_archive(jars_dir)
    fresh = archive.with_suffix(".new")
    archive.unlink(missing_ok=True)
    fresh.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _rehearse(folder, jars_dir, f"-XX:ArchiveClassesAtExit={fresh} {QUIET_SHARING}")
    if not fresh.is_file():
        raise FileNotFoundError("The JVM left no archive of its classes.")
    return fresh.rename(archive)


def _rehearse(folder: str, jars_dir: str, java_options: str) -> None:
    settings = RunnerSettings(
        jars_dir=jars_dir, spark_java_options=java_options, spark_local_dir=folder
    )
    places = [(t, p) for t in registry.targets().values() for p in t.rehearsals(folder)]
    jars = tuple(dict.fromkeys(jar for target, params in places for jar in target.jars(params)))
    spark: Any = None
    for target, params in places:
        spark = open_session(settings, "rehearsal", jars, target.spark_conf(params))
        writer = target.writer(params, SparkTasks(spark))
        if isinstance(writer, MergeTarget):
            _use(spark, writer, Path(folder))
        spark.stop()
    if spark is not None:
        _end_jvm(spark)


def _end_jvm(spark: Any) -> None:
    """End the JVM by an orderly exit, which writes the archive. The gateway's own end would be a
    kill."""
    gateway = spark.sparkContext._gateway
    with suppress(Exception):
        gateway.jvm.System.exit(0)
    gateway.proc.wait(EXIT_SECONDS)


def _use(spark: Any, writer: MergeTarget, folder: Path) -> None:
    """Do what runs do most: Arrow through Python tasks, a first copy, some merges."""
    spark.range(_ROWS).mapInArrow(_through, "id bigint").collect()
    table = TargetTable(_SCHEMA.id, "rehearsal", 1)
    writer.begin_snapshot(table, _SCHEMA)
    place = writer.snapshot_place(table, _SCHEMA)
    path = f"{place.folder}/1.parquet"
    rows = pa.table({"id": range(_ROWS), "name": ["a"] * _ROWS}, schema=_SCHEMA.arrow_schema())
    with pq.ParquetWriter(path, place.arrow, **place.options) as out:
        out.write_table(rows.cast(place.arrow))
    writer.load_snapshot_files(table, _SCHEMA, [path])
    uuid = writer.publish_snapshot(table, _SCHEMA, 1)
    table = TargetTable(_SCHEMA.id, "rehearsal", 1, uuid)
    for turn in range(_MERGES):
        changes = rows.append_column("_delete", pa.array([i % 7 == turn for i in range(_ROWS)]))
        batch = str(folder / f"{turn}.parquet")
        pq.write_table(changes, batch)
        ranges = (KeyRange(0, _ROWS),)
        writer.merge(table, FoldedBatch(_SCHEMA, (batch,), 2 + turn, _ROWS, ranges=ranges))
    if isinstance(writer, Maintained):
        writer.maintain(table)
    writer.drop(table)


def _through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    began = time.monotonic()
    made = make(os.environ.get("REPLICATOR_JARS_DIR", "var/jars"))
    size = made.stat().st_size >> 20
    sys.stdout.write(f"{size} MB of classes in {time.monotonic() - began:.0f} s.\n")
