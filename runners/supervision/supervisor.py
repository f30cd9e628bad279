"""Watches one run's process from start (or adoption) to its end. It records the end by one
transition."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from replicators.config import InvalidConfig
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.processes import (
    HOSTNAME,
    UNKNOWN,
    Adopted,
    Elsewhere,
    Process,
    Spawn,
    spawn_command,
    started_at,
)
from runners.models import Progress, Run
from runners.services import back_off_clear, run_ask_stop
from runners.states import RunState
from runners.supervision.backoff import failure_note, is_quiet
from runners.supervision.dispatch import send
from runners.supervision.jobs import shares_spark
from runners.supervision.sharing import SHARED, SharedSpark
from runners.supervision.starter import spawn_copies
from runners.transitions import IllegalTransition, run_transition

logger = logging.getLogger(__name__)

TURN_SECONDS = 1.0
SIGN_EVERY = timedelta(seconds=3)
SUPERVISION = timedelta(seconds=15)
START_LEASE = timedelta(seconds=90)
LEASE_MARGIN = timedelta(seconds=10)
KILL_SECONDS = 5.0
EXIT_STOPPED, EXIT_ERROR, EXIT_DATABASE = 0, 3, 4
STEP_DONE = "done"


def unwatched(now: datetime) -> Q:
    """Runs that no supervisor signed recently. A sign from the future was given before the clock
    was set back."""
    return (
        Q(supervised_at=None)
        | Q(supervised_at__lt=now - SUPERVISION)
        | Q(supervised_at__gt=now + SUPERVISION)
    )


def _shared_of(run: Run) -> SharedSpark | None:
    """The machine's shared Spark where the run uses it. A definition that can't be read is for the
    run's process to report."""
    try:
        return SHARED if shares_spark(run.replicator) else None
    except (InvalidConfig, ReplicationError):
        return None


def default_spawn() -> Spawn:
    """Starts real run processes."""
    return spawn_command(settings.BASE_DIR, settings.RUN_LOG_DIR)


class Supervisor:
    """Supervises one run. `supervise` blocks until the run has ended or another supervisor has
    taken over. Clock, spawn and waiting are parameters, so that tests control them."""

    def __init__(
        self,
        run_id: uuid.UUID | str,
        *,
        spawn: Spawn | None = None,
        clock: Callable[[], datetime] = timezone.now,
        wait: Callable[[float], Any] | None = None,
        closing: threading.Event | None = None,
    ) -> None:
        self._run_id = run_id
        self._spawn = spawn or default_spawn()
        self._clock = clock
        self._closing = closing or threading.Event()
        self._wait = wait or threading.Event().wait
        self._token = uuid.uuid4().hex
        self._signed_at: datetime | None = None
        self._terminated_at: datetime | None = None
        self._is_killed = False
        self._process: Process = Elsewhere()
        self._shared: SharedSpark | None = None

    def supervise(self) -> None:
        """Claim the run, start or adopt its process, and watch it to its end. Returns at once where
        another process supervises it."""
        if not self.begin():
            return
        while self._safe_turn():
            self._wait(TURN_SECONDS)

    # --- begin ---------------------------------------------------------------------------------------------------  # noqa: E501
    def begin(self) -> bool:
        """Claim by compare-and-set, then start or adopt; False where there is nothing to watch."""
        now = self._clock()
        claimed = Run.objects.active().filter(unwatched(now), pk=self._run_id)
        if not claimed.update(supervisor=self._token, supervised_at=now):
            return False
        self._signed_at = now
        run = self._read()
        self._shared = _shared_of(run)
        if run.lease:
            self._adopt(run)
            return True
        if run.is_stop_asked or self._closing.is_set():
            return self._give_back(run)
        return self._start(run, now)

    def _read(self) -> Run:
        return Run.objects.select_related("replicator").get(pk=self._run_id)

    def _mine(self) -> QuerySet[Run]:
        return Run.objects.active().filter(pk=self._run_id, supervisor=self._token)

    def _give_back(self, run: Run) -> bool:
        if run.is_stop_asked:
            self._transition(run, "run_stopped")
        else:
            self._mine().update(supervisor="", supervised_at=None)
        return False

    def _start(self, run: Run, now: datetime) -> bool:
        lease = uuid.uuid4().hex
        taken = self._mine().filter(lease="", is_stop_asked=False)
        if not taken.update(lease=lease, lease_until=now + START_LEASE, hostname=HOSTNAME):
            return self._give_back(self._read())
        spawn = self._spawn
        if self._shared is not None:
            self._shared.keep()
            spawn = spawn_copies(settings.RUN_LOG_DIR, settings.RUNNER.spark_shared_dir, spawn)
        try:
            self._process = spawn(str(run.pk), lease)
        except OSError as err:
            logger.exception("Run %s could not be started.", run.pk)
            self._fail(self._read(), "internal:unexpected", {"name_of_error": type(err).__name__})
            return False
        self._mine().update(pid=self._process.pid, pid_started_at=started_at(self._process.pid))
        return True

    def _adopt(self, run: Run) -> None:
        if run.pid and run.hostname == HOSTNAME:
            self._process = Adopted(run.pid, run.pid_started_at)
        logger.info("Adopted run %s, process %s.", run.pk, run.pid)

    # --- loop ----------------------------------------------------------------------------------------------------  # noqa: E501
    def _safe_turn(self) -> bool:
        try:
            return self.turn()
        except (DatabaseError, InterfaceError):
            logger.warning("The database did not answer; the run goes on.", exc_info=True)
            close_old_connections()
            return True

    def turn(self) -> bool:
        """Check the process and what was asked of it once; False when there is nothing more to
        watch."""
        now = self._clock()
        if not self._sign(now):
            return False
        code = self._process.poll()
        if self._shared is not None and code is None:
            self._shared.keep()
        run = self._read()
        if code is not None:
            self._finish(run, code)
            return False
        if run.lease_until is not None and run.lease_until + LEASE_MARGIN < now:
            return self._lease_over(run)
        if self._closing.is_set() and not run.is_stop_asked:
            run = run_ask_stop(run=run, origin="shutdown")
        if run.is_stop_asked:
            self._press(run, now)
        elif run.state == RunState.RUNNING and is_quiet(run, now):
            self._calm(run)
        return True

    def _sign(self, now: datetime) -> bool:
        """Sign that this run is watched; False where another supervisor took over or the run has
        ended."""
        if self._signed_at is not None and abs(now - self._signed_at) < SIGN_EVERY:
            return True
        self._signed_at = now
        return bool(self._mine().update(supervised_at=now))

    def _press(self, run: Run, now: datetime) -> None:
        """Enforce a requested stop: SIGTERM after the grace period, then SIGKILL to all processes
        of the run."""
        grace = timedelta(seconds=settings.STOP_GRACE_SECONDS)
        if abs(now - (run.stop_asked_at or now)) < grace:
            return
        if self._terminated_at is None:
            self._terminated_at = now
            logger.warning("Run %s did not stop in time; SIGTERM.", run.pk)
            self._process.terminate()
        elif abs(now - self._terminated_at).total_seconds() >= KILL_SECONDS:
            logger.warning("Run %s did not stop; SIGKILL.", run.pk)
            self._is_killed = True
            self._process.end()

    def _calm(self, run: Run) -> None:
        if Progress.objects.filter(replicator=run.replicator, failures__gt=0).exists():
            back_off_clear(run.replicator)

    def _lease_over(self, run: Run) -> bool:
        logger.error("Run %s no longer renews its lease; it is ended.", run.pk)
        if not self._process.end():
            return True
        self._fail(run, "run:lost", {}, event="run_lost")
        return False

    # --- end -----------------------------------------------------------------------------------------------------  # noqa: E501
    def _finish(self, run: Run, code: int) -> None:
        """Record the end by one transition, chosen by the exit code. No process of the run is alive
        by then."""
        while not self._process.end():
            logger.error("Processes of run %s can't be killed yet.", run.pk)
            self._wait(TURN_SECONDS)
        if code == EXIT_STOPPED or (code == UNKNOWN and run.step == STEP_DONE):
            self._transition(run, "run_stopped")
        elif code == EXIT_DATABASE:
            self._fail(run, "run:database-lost", {})
        elif run.error_code:
            self._fail(run, run.error_code, run.error_facts)
        elif run.is_stop_asked and (self._is_killed or self._terminated_at is not None):
            self._transition(run, "run_stopped", {"killed": True})
        elif code == UNKNOWN or code < 0:
            self._fail(run, "run:lost", {}, event="run_lost")
        else:
            self._fail(run, "internal:unexpected", {"name_of_error": f"exit code {code}"})

    def _transition(self, run: Run, event: str, facts: dict[str, Any] | None = None) -> None:
        try:
            run_transition(run=run, event=event, facts=facts, lease="", step="")
        except IllegalTransition:
            logger.info("Run %s had ended already.", run.pk)
        self._next()

    def _fail(
        self, run: Run, code: str, facts: dict[str, Any], *, event: str = "run_failed"
    ) -> None:
        run_lose(run=run, code=code, facts=facts, event=event, now=self._clock())
        self._next()

    def _next(self) -> None:
        send("reconcile_runs", expires=10.0)


@transaction.atomic
def run_lose(*, run: Run, code: str, facts: dict[str, Any], event: str, now: datetime) -> None:
    """End a run that failed or was lost, and count the failure. Does nothing where it has already
    ended."""
    try:
        run_transition(run=run, event=event, code=code, facts=facts, lease="", step="")
    except IllegalTransition:
        logger.info("Run %s had ended already.", run.pk)
        return
    failure_note(run=run, code=code, facts=facts, now=now)
