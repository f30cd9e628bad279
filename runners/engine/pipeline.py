"""A run: opens source, target and Spark, then orders capture, decode and the tables' jobs until it is asked to stop."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from replicators.connectors.errors import ReplicationError, Retry
from replicators.connectors.offsets import Position
from replicators.connectors.schema import TableSchema, TableSelection
from replicators.connectors.source import LogReader, SnapshotSession, SourcePlugin
from replicators.connectors.target import TargetPlugin, TargetWriter
from runners.engine import failpoints
from runners.engine.backlog import Backlog
from runners.engine.capture import Capture, discard_open_tail
from runners.engine.changelog import ChangeLog
from runners.engine.decode import decode_segments, load, task_for
from runners.engine.merge import Merger
from runners.engine.pulse import Pulse
from runners.engine.settings import RunnerSettings
from runners.engine.snapshot import Snapshotter
from runners.engine.spark import open_session
from runners.engine.store import Desire, SegmentRow, Store, TableState
from runners.engine.tables import TableJobs
from runners.engine.views import Views
from runners.engine.watchdog import Watchdog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("replicator.run")

TURN_SECONDS = 0.2
DESIRE_SECONDS = 0.5
PRUNE_SECONDS = 60.0
DECODE_SEGMENTS = 8
RECONNECT_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
POSITION_LOST = frozenset(
    {"source:position-lost", "source:slot-missing", "source:slot-invalidated"}
)


@dataclass(frozen=True, slots=True)
class Job:
    """What a run copies: `replicator` is its id for ever, `slot` the name of what it makes at the source."""

    replicator: str
    name: str
    slot: str
    source: SourcePlugin
    source_params: Any
    target: TargetPlugin
    target_params: Any
    tables: tuple[TableSelection, ...]
    options: dict[str, Any] = field(default_factory=dict)


def run_pipeline(
    job: Job,
    store: Store,
    settings: RunnerSettings,
    stop: threading.Event | None = None,
) -> None:
    """Run until the store or `stop` asks to stop (then it returns: sealed and recorded), or raise `ReplicationError`."""
    stop = stop or threading.Event()
    watchdog = Watchdog(store, settings)
    watchdog.start()
    try:
        with watchdog.step("start"):
            conf = job.target.spark_conf(job.target_params)
            spark = open_session(settings, job.name, job.target.jars(job.target_params), conf)
        try:
            if store.desire() is Desire.RUN and not stop.is_set():
                Pipeline(job, store, settings, spark, watchdog, stop).run()
        finally:
            spark.stop()
    finally:
        watchdog.close()


class Pipeline:
    """The parts of one run, and the loop that orders them."""

    def __init__(
        self,
        job: Job,
        store: Store,
        settings: RunnerSettings,
        spark: SparkSession,
        watchdog: Watchdog,
        stop: threading.Event,
    ) -> None:
        self._job = job
        self._store = store
        self._settings = settings
        self._spark = spark
        self._watchdog = watchdog
        self._stop = stop
        self._wake = threading.Event()
        self._log = ChangeLog(settings.log_url, job.replicator, uuid.uuid4().hex[:8])
        self._writer: TargetWriter = job.target.writer(job.target_params, spark)
        self._decode_lock = threading.Lock()
        self._decode_fault: BaseException | None = None
        self._reconnects = 0
        self._reconnected_at = 0.0
        self._next_number = 1

    # --- start ---------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Everything from start to a clean stop."""
        with self._watchdog.step("prepare"):
            discard_open_tail(self._store, self._log)
            memory = self._store.memory()
            self._next_number = 1 + max(memory.last_segment, self._log.highest_number())
            self._sweep()
            self._backlog = Backlog(self._store.segments(), self._next_number - 1)
            self._merger = Merger(
                self._spark, self._writer, self._store, self._log, self._job.replicator
            )
            reader = self._job.source.log_reader(self._job.source_params, self._job.slot)
            position, first = self._prepare(reader, memory.position)
            self._recover_tables()
            self._capture = self._start_capture(reader, position)
        self._run_threads(first)

    def _sweep(self) -> None:
        paths = [s.path for s in self._store.segments()]
        for row in self._store.tables():
            paths += [f.path for f in self._store.change_files(row.id, after=-1, upto=2**62)]
        swept = self._log.sweep(paths)
        if swept:
            logger.info("Removed %d files of the change log that were never listed.", swept)

    def _prepare(
        self, reader: LogReader, position: Position | None
    ) -> tuple[Position, SnapshotSession | None]:
        """Slot and publication made or verified (CORRECTNESS 23). A lost position fails every table until its re-sync is
        asked for, and the log starts again."""
        tables = self._describe()
        if position is not None:
            try:
                reader.prepare(tables, position)
            except ReplicationError as err:
                if err.code not in POSITION_LOST:
                    raise
                self._fail_all(err)
                with self._job.source.log_control(
                    self._job.source_params, self._job.slot
                ) as control:
                    control.drop()
            else:
                return position, None
        reader.prepare(tables, None)
        session = self._job.source.snapshot_first(self._job.source_params, self._job.slot, reader)
        self._store.record_start(session.point.position)
        return session.point.position, session

    def _fail_all(self, err: ReplicationError) -> None:
        logger.error("%s %s", err.message.text, err.message.suggestion)
        for row in self._store.tables():
            if row.is_snapshot_done and row.state is not TableState.REMOVED:
                self._store.table_event(
                    row.id,
                    "table_failed",
                    error_code=err.code,
                    error_facts=err.facts,
                    retry_at=None,
                )

    def _describe(self) -> list[TableSchema]:
        """The chosen tables that exist, with the columns that can be copied."""
        with self._job.source.catalog(self._job.source_params) as catalog:
            found = catalog.describe(self._job.tables)
        return [
            TableSchema(t.id, t.supported, t.key, t.primary_key, t.native_id, t.full_before)
            for t in found.values()
        ]

    def _recover_tables(self) -> None:
        for row in self._store.tables():
            touched = self._backlog.touched(row.id)
            if row.state is not TableState.REPLICATING:
                continue
            try:
                self._merger.recover(row, self._next_number - 1)
            except ReplicationError as err:
                if err.table is None:
                    raise
                self._store.table_event(
                    row.id,
                    "table_failed",
                    error_code=err.code,
                    error_facts=err.facts,
                    retry_at=None,
                )
                continue
            fresh = next(r for r in self._store.tables() if r.id == row.id)
            self._backlog.mark(row.id, self._merger.unmerged(fresh), touched)

    def _start_capture(self, reader: LogReader, position: Position) -> Capture:
        tables = self._describe()
        reader.start(position, tables)
        capture = Capture(
            reader,
            self._log,
            self._store,
            self._settings,
            describe=self._describe,
            next_number=self._next_number,
            on_seal=self._sealed,
        )
        capture.position = position
        self._reader = reader
        self._capture_thread = threading.Thread(target=capture.run, name="capture", daemon=True)
        self._capture_thread.start()
        return capture

    def _sealed(self, row: SegmentRow | None) -> None:
        if row is not None:
            self._backlog.sealed(row)
            self._next_number = row.number + 1
        self._wake.set()

    # --- loop ----------------------------------------------------------------------------------------------------
    def _run_threads(self, first: SnapshotSession | None) -> None:
        job, params = self._job, self._job.source_params
        chunk_reader = load(job.source.chunk_reader)
        views = Views(
            backlog=self._backlog,
            describe=self._describe,
            again=self._view_again,
            snapshotter=lambda session: Snapshotter(
                self._spark,
                self._writer,
                session,
                chunk_reader(params, session.point.token),
                self._settings,
                on_rows=lambda schema, rows, total: self._store.record_snapshot_rows(
                    schema.id, rows, total
                ),
                should_stop=self._stop.is_set,
            ),
            first=first,
        )
        self._tables = TableJobs(
            store=self._store,
            merger=self._merger,
            writer=self._writer,
            backlog=self._backlog,
            watchdog=self._watchdog,
            settings=self._settings,
            replicator=job.replicator,
            snapshots=views,
            decode_again=self._decode_again,
            unlink=self._log.unlink,
        )
        pulse = Pulse(
            lambda: job.source.log_control(params, job.slot),
            self._store,
            self._log,
            self._backlog,
            lambda: self._capture,
            self._settings,
        )
        decoder = threading.Thread(target=self._decode_loop, name="decode", daemon=True)
        decoder.start()
        pulse.start()
        try:
            self._loop(views)
        finally:
            self._stop.set()
            self._wake.set()
            self._close(decoder, pulse, views)

    def _view_again(self, tables: Sequence[TableSchema]) -> SnapshotSession:
        with self._job.source.log_control(self._job.source_params, self._job.slot) as control:
            control.add_tables(tables)
        self._capture.refresh_tables()
        return self._job.source.snapshot_again(self._job.source_params, self._job.slot)

    def _loop(self, views: Views) -> None:
        asked_at = pruned_at = time.monotonic()
        while not self._stop.is_set():
            now = time.monotonic()
            if now - asked_at >= DESIRE_SECONDS:
                asked_at = now
                if self._store.desire() is Desire.STOP:
                    self._stop.set()
                    return
            with self._watchdog.step("turn"):
                self._check_faults()
                self._tables.turn()
            if not any(
                r.state in {TableState.WAITING, TableState.SNAPSHOTTING}
                for r in self._store.tables()
            ):
                views.release()
            if now - pruned_at >= min(PRUNE_SECONDS, max(1.0, self._settings.keep_seconds)):
                pruned_at = now
                self._prune()
            self._stop.wait(TURN_SECONDS)

    def _check_faults(self) -> None:
        if self._decode_fault is not None:
            raise self._decode_fault
        fault = self._capture.fault
        if fault is not None:
            self._reconnect(fault)

    def _reconnect(self, fault: BaseException) -> None:
        """A cut connection is made again here, some times; everything else ends the run."""
        translated = (
            fault if isinstance(fault, ReplicationError) else self._job.source.translate(fault)
        )
        is_cut = isinstance(translated, ReplicationError) and translated.retry is Retry.AUTO
        if time.monotonic() - self._reconnected_at > 600:
            self._reconnects = 0
        if not is_cut or self._reconnects >= len(RECONNECT_SECONDS):
            raise translated from fault
        logger.warning("Capture stopped (%s); connecting again.", translated)
        self._stop.wait(RECONNECT_SECONDS[self._reconnects])
        self._reconnects += 1
        self._reconnected_at = time.monotonic()
        self._reader.close()
        with self._decode_lock:
            tail = [s.number for s in self._store.segments() if not s.is_closed]
            if tail:
                dropped = discard_open_tail(self._store, self._log)
                logger.info("Dropped %d segments of a transaction that was cut.", dropped)
                known = {s.number for s in self._store.segments()}
                self._backlog.dropped(n for n in tail if n not in known)
        position = self._store.memory().position
        assert position is not None
        reader = self._job.source.log_reader(self._job.source_params, self._job.slot)
        self._next_number = 1 + max(self._store.memory().last_segment, self._log.highest_number())
        try:
            tables = self._describe()
            reader.prepare(tables, position)
            self._capture = self._start_capture(reader, position)
        except ReplicationError as err:
            reader.close()
            if err.code in POSITION_LOST or err.retry is not Retry.AUTO:
                raise
            self._capture.fault = err

    # --- decode --------------------------------------------------------------------------------------------------
    def _decode_loop(self) -> None:
        try:
            while not self._stop.is_set():
                self._wake.wait(TURN_SECONDS)
                self._wake.clear()
                while not self._stop.is_set() and self._decode_some():
                    pass
        except BaseException as err:  # noqa: BLE001 - handed to the loop's thread
            self._decode_fault = err

    def _decode_some(self) -> bool:
        with self._decode_lock:
            rows = self._backlog.undecoded(DECODE_SEGMENTS)
            if not rows:
                return False
            with self._watchdog.step("decode"):
                self._decode(rows)
        return True

    def _decode(self, rows: Sequence[SegmentRow]) -> None:
        """Step 4: change files written, then listed with the segments' marks in one transaction."""
        tasks = [task_for(r, self._log.change_prefix(r.number)) for r in rows]
        try:
            done = decode_segments(self._spark, tasks, self._job.source.decoder)
        except ReplicationError as err:
            if err.code != "log:segment-corrupt":
                raise
            self._fail_all(err)
            self._store.record_decoded([r.number for r in rows], [])
            self._backlog.decoded([r.number for r in rows], [])
            return
        failpoints.hit("change_files_written")
        self._log.added(sum(f.size_bytes for f in done.files))
        live = {r.id for r in self._store.tables()}
        files = [f for f in done.files if f.table in live]
        for _, poison in done.poisons:
            self._store.table_event(
                poison.table,
                "table_failed",
                error_code=poison.code,
                error_facts=poison.facts,
                retry_at=None,
            )
        self._store.record_decoded([r.number for r in rows], files)
        failpoints.hit("change_files_listed")
        self._backlog.decoded([r.number for r in rows], files)

    def _decode_again(self, number: int) -> None:
        """A change file was damaged: its segment is decoded once more, to the same numbers."""
        logger.warning("A change file of segment %d is damaged; decoding it again.", number)
        with self._decode_lock:
            self._decode([s for s in self._store.segments() if s.number == number])

    # --- end -----------------------------------------------------------------------------------------------------
    def _prune(self) -> None:
        """Step 7: what is older than the keep time and merged by every live table goes (CORRECTNESS 28)."""
        older = time.time() - self._settings.keep_seconds
        segments, files = self._store.prunable(older_than=older)
        if segments:
            self._log.unlink([s.path for s in segments] + [f.path for f in files])
            self._store.forget([s.number for s in segments])
            self._backlog.dropped(s.number for s in segments)

    def _close(self, decoder: threading.Thread, pulse: Pulse, views: Views) -> None:
        with self._watchdog.step("stop", 120):
            self._capture.stop()
            self._capture_thread.join()
            decoder.join()
            self._tables.drain()
            views.release()
            pulse.close()
            self._reader.close()
