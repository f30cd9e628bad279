"""A run: opens source, target and Spark, then coordinates capture, decode and the tables' jobs
until it is asked to stop."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from replicators.connectors.schema.policy import follows_renames
from replicators.connectors.snapshot import SnapshotWait
from replicators.connectors.target import Closable
from runners.engine.apply.recovery import recover_tables
from runners.engine.capture.first_snapshot import FirstSnapshot
from runners.engine.capture.heartbeat import Heartbeat
from runners.engine.capture.reader import discard_open_tail
from runners.engine.capture.stream import Streaming
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.decode.job import load
from runners.engine.decode.thread import Decoding
from runners.engine.idle import OWN, SHARED
from runners.engine.job import Job
from runners.engine.kinds import Kit
from runners.engine.scheduler import Scheduler
from runners.engine.schema.watch import DriftWatch, look
from runners.engine.settings import RunnerSettings
from runners.engine.snapshot.estimates import estimate_rows
from runners.engine.snapshot.waiting import ConsistentSnapshots, PatientWait, StopAsked
from runners.engine.store.protocol import Desire, Store, is_copied
from runners.engine.tasks.on_spark import SparkTasks
from runners.engine.tasks.opening import opened_for
from runners.engine.tasks.spark import jvm_ended, require_jvm
from runners.engine.watchdog import Watchdog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EngineRun", "Job", "run_engine"]

logger = logging.getLogger("replicator.run")

DESIRE_SECONDS = 0.5
STIRRED_SECONDS = 0.05
"""Between something that stirs the run and its turn: jobs that end together get one turn."""
PRUNE_SECONDS = 60.0
PRUNE_PORTIONS = 8


def run_engine(
    job: Job,
    store: Store,
    settings: RunnerSettings,
    stop: threading.Event | None = None,
    *,
    is_shared: bool = False,
) -> None:
    """Run until the store or `stop` asks to stop, or raise `ReplicationError`. When it returns,
    everything is sealed and recorded. `is_shared`: on the machine's shared Spark."""
    stop = stop or threading.Event()
    watchdog = Watchdog(store, settings)
    watchdog.start()
    try:
        with ExitStack() as opened:
            with watchdog.step("start"):
                spark = opened.enter_context(opened_for(job, settings, is_shared=is_shared))
            if store.desire() is Desire.RUN and not stop.is_set():
                with suppress(StopAsked):
                    EngineRun(
                        job, store, settings, spark, watchdog, stop, is_shared=is_shared
                    ).run()
    finally:
        watchdog.close()


class EngineRun:
    """The parts of one run, and the loop that coordinates them."""

    def __init__(
        self,
        job: Job,
        store: Store,
        settings: RunnerSettings,
        spark: SparkSession,
        watchdog: Watchdog,
        stop: threading.Event,
        *,
        is_shared: bool = False,
    ) -> None:
        self._job = job
        self._is_shared = is_shared
        self._idle = SHARED if is_shared else OWN
        self._store = store
        self._settings = settings
        self._spark = spark
        self._watchdog = watchdog
        self._stop = stop
        self._log = ChangeLog(
            settings.log_url, job.replicator, uuid.uuid4().hex[:8], settings.log_spool_dir
        )
        self._tasks = SparkTasks(spark, self._log.target_files)
        self._target = job.target.writer(job.target_params, self._tasks)
        apart = job.target.apart_seconds(job.target_params, settings.keep_seconds)
        self._log_seconds = settings.keep_seconds + apart

    # --- start ---
    def run(self) -> None:
        """Everything from start to a clean stop."""
        with self._watchdog.step("prepare"):
            discard_open_tail(self._store, self._log)
            memory = self._store.memory()
            last_number = max(memory.last_segment, self._log.highest_number())
            self._sweep()
            self._make_parts(last_number)
            position, first = self._streaming.prepare(memory.position, self._wait())
            recover_tables(self._rewinder, self._applier, self._store, self._backlog)
            self._streaming.start(position)
            estimate_rows(self._job, self._store)
        self._run_threads(first)

    def _wait(self) -> SnapshotWait:
        return PatientWait(self._settings.snapshot_wait_seconds, self._should_stop, self._store)

    def _should_stop(self) -> bool:
        return self._stop.is_set() or self._store.desire() is Desire.STOP

    def _sweep(self) -> None:
        paths = [s.path for s in self._store.segments()]
        for row in self._store.tables():
            paths += [f.path for f in self._store.change_files(row.id, after=-1, upto=2**62)]
        swept = self._log.sweep(paths)
        if swept:
            logger.info("Removed %d files of the change log that were never listed.", swept)

    def _make_parts(self, last_number: int) -> None:
        job, store, log = self._job, self._store, self._log
        self._backlog = Backlog(store.segments(), last_number)
        self._kit = Kit(job, self._target, self._tasks, store, log, self._settings, self._backlog)
        self._publisher = self._kit.publisher(self._idle)
        self._evolver = self._kit.evolver()
        self._spending = self._kit.spending()
        self._applier = self._kit.applier(self._evolver, self._spending)
        self._rewinder = self._kit.rewinder(
            lambda table: self._watchdog.extend(f"rewind of {table}"), self._stop.is_set
        )
        self._decoding = Decoding(
            self._tasks,
            job.source.log.decoder if job.source.log is not None else None,
            store,
            log,
            self._backlog,
            self._watchdog,
            self._stop,
            self._evolver.fault,
            self._kit.limits,
            grows=job.source.log.grows if job.source.log is not None else "",
        )
        self._streaming = Streaming(
            job,
            store,
            log,
            self._settings,
            self._backlog,
            self._stop,
            next_number=last_number + 1,
            files=self._decoding,
            watchdog=self._watchdog,
            tasks=self._tasks,
            on_seal=self._decoding.wake,
            on_fault=self._evolver.fault,
            wait=self._wait,
            idle=self._idle,
        )

    # --- loop ---
    def _run_threads(self, first: FirstSnapshot | None) -> None:
        job, params = self._job, self._job.source_params
        chunk_reader = load(job.source.chunk_reader)
        heartbeat = Heartbeat(
            lambda: job.source.control(params, job.slot, self._streaming.capture.position),
            self._store,
            self._log,
            self._backlog,
            lambda: self._streaming.capture,
            self._settings,
            job.options.source_limit_bytes,
            self._idle,
        )
        snapshots = ConsistentSnapshots(
            backlog=self._backlog,
            publish=self._streaming.publish,
            describe=self._streaming.schemas,
            open_snapshot=lambda wait: job.source.snapshot_again(
                params, job.slot, wait, self._streaming.capture.position
            ),
            wait=self._wait,
            snapshotter=lambda session, table: self._kit.copier(
                session,
                chunk_reader(params, session.point.token),
                now=heartbeat.now,
                on_progress=lambda s, rows: self._watchdog.extend(f"snapshot of {s.id}", rows),
                should_stop=lambda: self._stop.is_set() or not is_copied(self._store, table),
                is_log_full=lambda: self._streaming.capture.is_waiting_for_space,
            ),
            first=first,
            columns=job.source.capabilities.columns,
        )
        self._tables = Scheduler(
            store=self._store,
            merger=self._applier,
            writer=self._target,
            backlog=self._backlog,
            watchdog=self._watchdog,
            settings=self._settings,
            replicator=job.replicator,
            snapshots=snapshots,
            decoding=self._decoding,
            streaming=self._streaming,
            rounds=self._kit.rounds(heartbeat, self._applier, self._publisher, self._idle),
            rewinder=self._rewinder,
            resolver=self._kit.resolver(heartbeat),
            repairer=self._kit.repairer(self._applier, self._spending),
            together=self._kit.together(),
            spared=self._spending.seconds,
            evolver=self._evolver,
            is_spark_lost=lambda: jvm_ended(self._spark),
            drops_vanished=job.options.drops_vanished,
        )
        follows = follows_renames(self._evolver.policy)
        self._catalog = DriftWatch(
            lambda: look(job, self._store, follows=follows), self._settings.catalog_seconds
        )
        self._decoding.start()
        heartbeat.start()
        self._catalog.start()
        try:
            self._loop(snapshots, heartbeat)
        finally:
            self._stop.set()
            self._close(heartbeat, snapshots)

    def _loop(self, snapshots: ConsistentSnapshots, heartbeat: Heartbeat) -> None:
        asked_at = pruned_at = time.monotonic()
        while not self._stop.is_set():
            now = time.monotonic()
            if now - asked_at >= DESIRE_SECONDS:
                asked_at = now
                if self._store.desire() is Desire.STOP:
                    self._stop.set()
                    return
            require_jvm(self._spark)
            with self._watchdog.step("turn"):
                self._decoding.check()
                self._streaming.check()
                self._streaming.hold(heartbeat.hours_left)
                found = self._catalog.take()
                if found is not None:
                    self._tables.see(found)
                is_copying = self._tables.turn()
            if not is_copying:
                snapshots.release()
            if now - pruned_at >= min(PRUNE_SECONDS, max(1.0, self._settings.keep_seconds)):
                pruned_at = now
                self._prune()
            self._pause(is_copying=is_copying)

    def _pause(self, *, is_copying: bool) -> None:
        """Wait for the next turn, until something is decoded or a job ends. A run on the shared
        Spark that can start nothing waits longer for that."""
        is_idle = self._is_shared and self._tables.waits_for_jobs(is_copying=is_copying)
        if self._backlog.stirred.wait(self._idle.turn if is_idle else OWN.turn):
            self._stop.wait(STIRRED_SECONDS)
        self._backlog.stirred.clear()

    # --- end ---
    def _prune(self) -> None:
        """Step 7: remove what is older than the keep time and merged by every live table
        (CORRECTNESS 28). Where rewinds begin at certain older versions, the log since the last such
        version before the keep time is needed too. It is removed where there is no space."""
        is_short = self._streaming.capture.is_waiting_for_space
        kept = self._settings.keep_seconds if is_short else self._log_seconds
        older = time.time() - kept
        for _ in range(PRUNE_PORTIONS):
            segments, files = self._store.prunable(older_than=older)
            if not segments:
                return
            self._store.forget([s.number for s in segments])
            self._backlog.dropped(s.number for s in segments)
            self._log.unlink([s.path for s in segments] + [f.path for f in files])

    def _close(self, heartbeat: Heartbeat, snapshots: ConsistentSnapshots) -> None:
        with self._watchdog.step("stop", 120):
            self._streaming.stop()
            self._decoding.join()
            self._tables.drain()
            if self._publisher is not None:
                self._publisher.close()
            snapshots.release()
            heartbeat.close()
            self._catalog.close()
            self._streaming.close()
            if isinstance(self._target, Closable):
                self._target.close()
