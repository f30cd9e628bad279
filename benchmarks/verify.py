"""Line `verify`: ten million rows of PostgreSQL compared with their copy in Iceberg. The peers are
a comparison row by row, as AWS DMS describes its data validation, and datafold's data-diff."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import place, row_by_row
from benchmarks.copied import TABLE, Copied, postgresql
from benchmarks.peers import environments
from benchmarks.report import Peer, Result
from benchmarks.resources import Cpu, gib_of, turn
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.target import TargetTable
from runners.engine.decode.job import load
from runners.engine.job import Job
from runners.engine.snapshot.chunks import Snapshotter
from runners.engine.store.protocol import ChangeFileRow, MemoryStore, TableRow, TableState
from runners.engine.store.quarantine import QuarantinedRow
from runners.engine.tasks.on_spark import SparkTasks
from runners.engine.verify.following import Captured
from runners.engine.verify.report import Options, Outcome, TableProgress, TableReport
from runners.engine.verify.run import verify
from setup.machine import Missing

ROWS = 10_000_000
REPLICATOR = "bench"
BY_ROW = "row by row, as DMS describes it"
DATA_DIFF = "data-diff"
DAMAGED = 4321
LIMIT_SECONDS = 600.0
NEVER = 1 << 62
_COLUMNS = ("customer", "status", "amount", "note", "at", "ok")


@dataclass(frozen=True, slots=True)
class Still:
    """A replicator after its copy, of a source where nothing happens: all that there is is captured
    and merged."""

    row: TableRow

    def tables(self) -> Sequence[TableRow]:
        return [self.row]

    def table(self, table: TableId) -> TableRow:
        return self.row

    def is_running(self) -> bool:
        return False

    def captured(self) -> Captured:
        return Captured(NEVER, 0)

    def position(self) -> Position | None:
        return None

    def first_segment(self) -> int:
        return 1

    def is_decoded(self, upto: int) -> bool:
        return True

    def change_files(self, table: TableId, *, after: int, upto: int) -> list[ChangeFileRow]:
        return []

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedRow]:
        return []


class Silent:
    """Hears nothing, and never stops."""

    def progress(self, now: TableProgress) -> None:
        """Nobody looks."""

    def table_done(self, report: TableReport) -> None:
        """Nobody looks."""

    def should_stop(self) -> bool:
        return False


class Ours:
    """Our verification of one table."""

    def __init__(self, spark: Any, folder: Path, made: Copied, target: Any) -> None:
        self._folder = folder
        self._tasks = SparkTasks(spark, str(folder / "files"))
        self._job = Job(
            REPLICATOR, "benchmark", "bench_v", made.source, made.params, place.TARGET, target
        )
        self._row = self._copied(made, target)

    def _copied(self, made: Copied, target: Any) -> TableRow:
        """The copy, as a run makes it."""
        schema: TableSchema = made.describe()
        writer = place.TARGET.writer(target, self._tasks)
        with made.source.snapshot_again(made.params, "bench_copy") as session:
            reader = load(made.source.chunk_reader)(made.params, session.point.token)
            store, settings = MemoryStore([TABLE]), place.settings(self._folder)
            snapshotter = Snapshotter(self._tasks, writer, session, reader, settings, store)
            done = snapshotter.copy(TargetTable(TABLE, REPLICATOR, 1), schema, 1)
        assert done is not None
        return replace(
            TableRow(TABLE, TableState.REPLICATING, 1, schema, done[0]), is_snapshot_done=True
        )

    def verify(self) -> TableReport:
        """Compare the table."""
        settings = place.settings(self._folder)
        (report,) = verify(
            self._job, Still(self._row), self._tasks, settings, Options(), Silent()
        ).tables
        return report


def damage(spark: Any, target: Any) -> None:
    """Change one row of the copy by hand. Its file is written again, so that readers of plain
    Parquet files see the change."""
    name = f"{target.catalog_name}.{TABLE.schema}.{TABLE.name}"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.update.mode' = 'copy-on-write')")
    spark.sql(f"UPDATE {name} SET note = 'damaged' WHERE id = {DAMAGED}")


def data_files(target: Any) -> tuple[str, ...]:
    """The table's Parquet files; none of them has deleted rows."""
    tasks = list(place.iceberg_table(target, TABLE.schema, TABLE.name).scan().plan_files())
    assert not any(t.delete_files for t in tasks)
    return tuple(t.file.file_path.removeprefix("file://") for t in tasks)


def by_row(rows: int, files: Sequence[str], url: str) -> Peer:
    """The figure of a comparison row by row."""
    with turn(BY_ROW):
        began = time.monotonic()
        found = row_by_row.compare(row_by_row.Sides(url, tuple(files)), rows)
        took = time.monotonic() - began
    place.logger.info("%s: %.1f s, %d differ", BY_ROW, took, found)
    if found != 1:
        return Peer(BY_ROW, None, missing=f"failed: it found {found} differing rows, not one")
    return Peer(BY_ROW, round(rows / took), gib_of(BY_ROW))


def by_data_diff(folder: Path, rows: int, files: Sequence[str], url: str) -> Peer:
    """data-diff's figure. It can't read Iceberg: DuckDB shows it the table's Parquet files."""
    path = folder / "copy.duckdb"
    listed = ", ".join(f"'{f}'" for f in files)
    with duckdb.connect(str(path)) as made:
        made.execute(f"CREATE VIEW {TABLE.name} AS FROM read_parquet([{listed}])")
    try:
        with environments.talk("datadiff", "datadiff_compare", folder) as peer:
            peer.say(
                source=url, target=str(path), table=[TABLE.schema, TABLE.name], key="id",
                columns=_COLUMNS,
            )  # fmt: skip
            told = peer.hear(LIMIT_SECONDS)
    except (Missing, RuntimeError, OSError) as err:
        place.logger.warning("%s: %s", DATA_DIFF, err)
        return Peer(DATA_DIFF, None, missing=environments.reason(err))
    place.logger.info("%s: %s", DATA_DIFF, told)
    if told["differences"] not in {1, 2}:  # it gives both sides of a differing row
        reason = f"failed: it found {told['differences']} differing rows, not one"
        return Peer(DATA_DIFF, None, missing=reason)
    return Peer(DATA_DIFF, round(rows / told["seconds"]), round(told["peak_mib"] / 1024, 2))


def measure(line: str) -> list[Result]:
    """One row of the copy is damaged, and each side has to find it. Ours runs in rounds, of which
    the first warms up; each peer runs once."""
    rows, seconds, checked = place.scaled(ROWS, row_by_row.PARTITION), [], True
    with place.folder(line) as folder, postgresql(rows) as made:
        target = place.target_params(folder)
        with place.spark(folder, target) as spark:
            ours = Ours(spark, folder, made, target)
            damage(spark, target)
            files = data_files(target)
            for _ in range(place.ROUNDS):
                cpu, began = Cpu(), time.monotonic()
                with turn():
                    report = ours.verify()
                seconds.append(time.monotonic() - began)
                spent = cpu.said()
                place.logger.info("ours: %.1f s, %s", seconds[-1], report)
                checked &= _is_right(report, rows)
        peers = (
            by_row(rows, files, made.program_url),
            by_data_diff(folder, rows, files, made.program_url),
        )
    took = place.median(seconds[1:] or seconds)
    shown = ", ".join(f"{s:.1f}" for s in seconds)
    note = (
        f"{rows:,} rows of seven columns in PostgreSQL and in Iceberg; one row of the copy "
        f"differs, and each side has to find it. Seconds of ours: {shown} (the first warms "
        "up); the peer ran once. "
    )
    beside_row = (
        "Row by row: partitions of 10,000 keys from both sides, compared in Python, one process "
        "for each core, Iceberg's Parquet files read by DuckDB; DMS itself was not at hand. CPU "
        f"seconds of ours: {spent}."
    )
    beside_diff = (
        "data-diff can't read Iceberg; DuckDB shows it the same files, and both databases compute "
        "checksums of segments."
    )
    return [
        _result(line, rows, took, peers[0], note + beside_row, checked=checked),
        _result(f"{line}-others", rows, took, peers[1], note + beside_diff, checked=checked),
    ]


def _result(
    line: str, rows: int, seconds: float, peer: Peer, note: str, *, checked: bool
) -> Result:
    mine = rows / seconds
    ratio = round(mine / peer.value, 2) if peer.value else None
    return Result(line, "rows/s", round(mine), 3, (peer,), ratio, checked=checked, note=note)


def _is_right(report: TableReport, rows: int) -> bool:
    (found,) = report.differences or (None,)
    is_it = found is not None and dict(found.key) == {"id": DAMAGED}
    counts = (report.rows_source, report.rows_target, report.wrong)
    return report.outcome is Outcome.DIFFERENT and is_it and counts == (rows, rows, 1)
