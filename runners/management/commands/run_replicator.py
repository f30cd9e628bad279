"""The process of one run. The supervisor starts and watches it; people never start it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.core.management.base import CommandParser
from django.utils import timezone

from replicators.config import InvalidConfig, Options
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.reach import require_reach
from runners.engine.processes import HOSTNAME, LEASE, started_at
from runners.leased import EXIT_UNEXPECTED, LeasedCommand
from runners.logs.write import RowHandler
from runners.models import Run
from runners.store.django import DjangoStore
from runners.supervision.jobs import job_of, secrets_of, settings_of, shares_spark
from runners.supervision.supervisor import EXIT_DATABASE, EXIT_ERROR, EXIT_STOPPED, STEP_DONE
from runners.transitions import IllegalTransition, run_transition

logger = logging.getLogger("replicator.run")

T = TypeVar("T")
PATIENCE = 0.6
"""Part of a lease's time for which an unreachable own database is waited for: less than the
watchdog waits for the lease's renewal."""


class Command(LeasedCommand):
    """Exit codes: 0 stopped as asked, 3 an error stored on the run, 4 the program's own database
    could not be reached, 1 anything else."""

    help = "Runs a replicator (internal: started by the supervisor)."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run's id. The lease is in the environment."""
        parser.add_argument("run_id")

    def work(self, lease: str, options: dict[str, Any]) -> int:
        """Run to the end."""
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        return _run(options["run_id"], lease, stop)


def _run(run_id: str, lease: str, stop: threading.Event) -> int:
    if not lease:
        logger.error("%s is not set: runs are started by their supervisor.", LEASE)
        return EXIT_UNEXPECTED
    held = Run.objects.active().filter(pk=run_id, lease=lease)
    if not held.update(pid=os.getpid(), pid_started_at=started_at(os.getpid()), hostname=HOSTNAME):
        logger.error("Another run took over.")
        return EXIT_ERROR
    run = held.select_related("replicator").get()
    handler = _attach(run)
    try:
        _work(run, lease, stop)
    except ReplicationError as err:
        about = {"table": str(err.table or "")}
        logger.exception("%s %s", err.message.text, err.message.suggestion, extra=about)
        if err.code == "run:database-lost":
            return EXIT_DATABASE
        facts = {**err.facts, **({"table": str(err.table)} if err.table else {})}
        held.update(error_code=err.code, error_facts=facts)
        return EXIT_ERROR
    except Exception as err:
        logger.exception("Unexpected error.")
        facts = {"name_of_error": type(err).__name__}
        held.update(error_code="internal:unexpected", error_facts=facts)
        return EXIT_UNEXPECTED
    else:
        logger.info("Stopped.")
        held.update(step=STEP_DONE)
        return EXIT_STOPPED
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _read(part: Callable[[Replicator], T], run: Run) -> T:
    """Read a part of the replicator's definition; `config:invalid` where this version can't read
    it."""
    try:
        return part(run.replicator)
    except InvalidConfig as err:
        field, reason = next(iter(err.errors.items()))
        raise ReplicationError("config:invalid", field=field, reason=reason) from err


def _level(replicator: Replicator) -> int:
    """The log level that the options set. Options that this version can't read fail the run later,
    with a message."""
    try:
        name = Options.parse(replicator.options).log_level
    except InvalidConfig:
        name = Options().log_level
    return logging.getLevelNamesMapping()[name.upper()]


def _attach(run: Run) -> RowHandler:
    try:
        secrets = secrets_of(run.replicator)
    except ReplicationError:
        secrets = ()
    level = _level(run.replicator)
    handler = RowHandler(run, secrets, level=level)
    logging.getLogger("replicator").setLevel(level)
    root = logging.getLogger()
    handler.cover(list(root.handlers))
    root.addHandler(handler)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    return handler


def _work(run: Run, lease: str, stop: threading.Event) -> None:
    from runners.engine.run import run_engine

    settings = _read(settings_of, run)
    patience = settings.lease_seconds * PATIENCE
    store = DjangoStore(run.pk, lease, patience_seconds=patience)
    try:
        run_transition(run=run, event="run_started", started_at=timezone.now())
    except IllegalTransition:
        logger.info("A stop was asked before the start.")
        return
    job = _read(job_of, run)
    require_reach(job.source, job.source_params)
    require_reach(job.target, job.target_params)
    logger.info("Started.")
    run_engine(job, store, settings, stop, is_shared=_read(shares_spark, run))
