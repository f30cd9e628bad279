"""The process of one verification. `supervision.verifications` starts and watches it; people never
start it."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandParser
from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from replicators.config import InvalidConfig
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.reach import require_reach
from runners.engine.processes import HOSTNAME, LEASE, started_at
from runners.engine.settings import RunnerSettings
from runners.engine.verify.report import Report
from runners.engine.watchdog import kill_own_group
from runners.leased import LeasedCommand
from runners.logs.write import RowHandler
from runners.supervision.jobs import job_of, secrets_of, settings_of
from runners.verifications import Verification
from runners.verifying.followed import FollowedReplicator
from runners.verifying.record import Record

if TYPE_CHECKING:
    from runners.engine.job import Job

logger = logging.getLogger("replicator.verify")

RENEW_SECONDS = 3.0
EXIT_DONE, EXIT_ERROR = 0, 3


class Command(LeasedCommand):
    """Exit codes: 0 the end is recorded, 3 another process has the verification, 1 anything
    else."""

    help = "Verifies a replicator (internal: started by the workers)."

    def add_arguments(self, parser: CommandParser) -> None:
        """The verification's id. The lease is in the environment."""
        parser.add_argument("verification_id")

    def work(self, lease: str, options: dict[str, Any]) -> int:
        """Verify to the end."""
        return _verify(options["verification_id"], lease)


class Renewal:
    """A thread that renews the lease until `close`. It ends this process and all that it started
    where another one has the verification, where the lease can't be renewed before its end, and
    where the comparison was silent for longer than a step may take."""

    def __init__(self, record: Record, *, lease_seconds: float, silent_seconds: float) -> None:
        self._record = record
        self._lease_seconds = lease_seconds
        self._silent_seconds = silent_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        renewed = time.monotonic()
        while not self._stop.wait(RENEW_SECONDS):
            try:
                if time.monotonic() - self._record.heard_at > self._silent_seconds:
                    logger.error("Nothing was compared for too long; the process is ended.")
                    self._record.failed("verify:stuck", {})
                    kill_own_group()
                self._record.renew()
                renewed = time.monotonic()
            except ReplicationError:
                if not self._stop.is_set():
                    kill_own_group()
            except (DatabaseError, InterfaceError):
                close_old_connections()
                if time.monotonic() - renewed > self._lease_seconds:
                    kill_own_group()
        connection.close()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(timeout=RENEW_SECONDS * 2)


def _verify(pk: str, lease: str) -> int:
    mine = Verification.objects.active().filter(pk=pk, lease=lease)
    pid = os.getpid()
    if not lease or not mine.update(pid=pid, pid_started_at=started_at(pid), hostname=HOSTNAME):
        logger.error("Another process took over, or %s is not set.", LEASE)
        return EXIT_ERROR
    row = mine.select_related("replicator").get()
    handler = _attach(row.replicator)
    lease_seconds = settings_lease()
    record = Record(row, lease, lease_seconds=lease_seconds)
    signal.signal(signal.SIGTERM, lambda *_: record.stop())
    try:
        _work(row.replicator, record, lease_seconds)
    except ReplicationError as err:
        logger.exception("%s %s", err.message.text, err.message.suggestion)
        facts = {**err.facts, **({"table": str(err.table)} if err.table else {})}
        _end(record, err.code, facts)
    except Exception as err:
        logger.exception("Unexpected error.")
        _end(record, "internal:unexpected", {"name_of_error": type(err).__name__})
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    return EXIT_DONE


def _end(record: Record, code: str, facts: dict[str, Any]) -> None:
    """Record the error, unless the verification is another process's by now."""
    with suppress(ReplicationError):
        record.failed(code, facts)


def settings_lease() -> float:
    """The length of a lease."""
    from django.conf import settings

    return float(settings.RUNNER.lease_seconds)


def _attach(replicator: Replicator) -> RowHandler:
    """Write log lines to the replicator's log, secrets masked."""
    try:
        secrets = secrets_of(replicator)
    except ReplicationError:
        secrets = ()
    handler = RowHandler(replicator, secrets)
    logging.getLogger("replicator").setLevel(logging.INFO)
    root = logging.getLogger()
    handler.cover(list(root.handlers))
    root.addHandler(handler)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    return handler


def _work(replicator: Replicator, record: Record, lease_seconds: float) -> None:
    try:
        job, settings = job_of(replicator), settings_of(replicator)
    except InvalidConfig as err:
        field, reason = next(iter(err.errors.items()))
        raise ReplicationError("config:invalid", field=field, reason=reason) from err
    require_reach(job.source, job.source_params)
    require_reach(job.target, job.target_params)
    record.started()
    renewal = Renewal(
        record, lease_seconds=lease_seconds, silent_seconds=settings.step_deadline_seconds
    )
    try:
        logger.info("The verification begins.")
        record.done(_compared(replicator, job, settings, record))
        logger.info("The verification has ended.")
    finally:
        renewal.close()


def _compared(replicator: Replicator, job: Job, settings: RunnerSettings, record: Record) -> Report:
    """Compare the tables that were asked for; the record hears how it goes on."""
    from runners.engine.verify.run import run_verification

    followed = FollowedReplicator(replicator)
    return run_verification(job, followed, settings, record.options(), record)
