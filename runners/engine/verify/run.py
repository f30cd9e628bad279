"""Compares source and target of a replicator, in a process of its own beside the replicator's
run."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from replicators.connectors import files
from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.reading import ReadsRows
from replicators.connectors.snapshot import SnapshotSession
from replicators.connectors.tasks import Tasks
from runners.engine.changelog.segments import target_files_of
from runners.engine.decode.job import load
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.snapshot.waiting import PatientWait, StopAsked
from runners.engine.store.protocol import TableRow, is_live
from runners.engine.tasks.on_spark import SparkTasks
from runners.engine.tasks.opening import opened_for
from runners.engine.verify.following import Followed, Stopped
from runners.engine.verify.reading import Source, Tools
from runners.engine.verify.report import Listener, Options, Outcome, Report, TableReport
from runners.engine.verify.table import Work, verify_table
from runners.engine.verify.throttle import Throttle

logger = logging.getLogger("replicator.verify")

MEBIBYTE = 1 << 20


def run_verification(
    job: Job, followed: Followed, settings: RunnerSettings, options: Options, listener: Listener
) -> Report:
    """Open Spark as a run does, and compare. `ReplicationError` where nothing can be compared at
    all."""
    with opened_for(job, settings, ("runners.engine.verify.pairs",)) as spark:
        tasks = SparkTasks(spark, target_files_of(settings.log_url, job.replicator))
        return verify(job, followed, tasks, settings, options, listener)


def verify(
    job: Job,
    followed: Followed,
    tasks: Tasks,
    settings: RunnerSettings,
    options: Options,
    listener: Listener,
) -> Report:
    """Compare the tables, one after the other. `verify:no-rows` where the target's rows can't be
    read."""
    began, is_running = time.time(), followed.is_running()
    target = job.target.writer(job.target_params, tasks)
    if not isinstance(target, ReadsRows):
        raise ReplicationError("verify:no-rows", target=job.target.label)
    folder = f"{tasks.folder}/verify-{uuid.uuid4().hex[:12]}"
    files.make_folder(folder)
    reports: list[TableReport] = []
    try:
        with ExitStack() as stack:
            sources = _Sources(job, followed, settings, listener)
            stack.callback(sources.close)
            throttle = Throttle(
                options.rows_a_second,
                options.mebibytes_a_second * MEBIBYTE,
                listener.should_stop,
            )
            work = Work(
                job,
                followed,
                target,
                Tools(tasks, throttle, listener.should_stop),
                settings,
                options,
                listener,
                folder,
                sources.opened,
                sources.now,
            )
            for row in _tables(followed, options):
                report = _stopped(row) if listener.should_stop() else verify_table(work, row)
                reports.append(report)
                listener.table_done(report)
    finally:
        with suppress(OSError):
            files.remove_folder(folder)
    return Report(began, time.time(), tuple(reports), is_running)


def _tables(followed: Followed, options: Options) -> list[TableRow]:
    asked = set(options.tables)
    return [r for r in followed.tables() if is_live(r) and (not asked or r.id in asked)]


def _stopped(row: TableRow) -> TableReport:
    now = time.time()
    return TableReport(row.id, Outcome.STOPPED, now, now, row.generation, str(row.mode))


@dataclass(slots=True)
class _Sources:
    """Opens consistent snapshots of the source, and asks for the end of its log."""

    job: Job
    followed: Followed
    settings: RunnerSettings
    listener: Listener

    @contextmanager
    def opened(self) -> Iterator[Source]:
        """A new consistent snapshot. `source:snapshot-waits` where a transaction holds it up for
        too long; `Stopped`."""
        wait = PatientWait(self.settings.snapshot_wait_seconds, self.listener.should_stop)
        try:
            session = self._session(wait)
        except StopAsked as err:
            raise Stopped from err
        with session:
            reader = load(self.job.source.chunk_reader)
            yield Source(session, reader(self.job.source_params, session.point.token))

    def _session(self, wait: PatientWait) -> SnapshotSession:
        job = self.job
        return job.source.snapshot_again(job.source_params, job.verify_slot, wait, self._captured())

    def _captured(self) -> Position | None:
        return self.followed.position()

    def now(self) -> int:
        """The end of the source's log. Everything that was committed before this call lies before
        it."""
        job = self.job
        with job.source.control(job.source_params, job.slot, self._captured()) as control:
            return control.heartbeat()

    def close(self) -> None:
        """Nothing stays open."""
