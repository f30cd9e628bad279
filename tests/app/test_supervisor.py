"""One run's process from start to end, by an injected clock and processes."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from typing import Any

import pytest

from replicators.connectors.model.positions import Position
from replicators.models import DesiredState, Replicator
from runners.engine.processes import HOSTNAME
from runners.engine.store.protocol import SegmentRow
from runners.models import Event, Progress, Run, Segment
from runners.selectors import replicator_badge
from runners.services import replicator_pause, replicator_start, run_transition
from runners.states import RunState
from runners.store.django import DjangoStore
from runners.supervision.reconcile import reconcile_runs
from runners.supervision.supervisor import Supervisor
from tests.app.factories import make_replicator
from tests.fakes.clock import FakeClock
from tests.fakes.process import FakeProcess, FakeSpawn

pytestmark = pytest.mark.django_db


class Stage:
    """A replicator that is to run, its run, and a supervisor at its beginning."""

    def __init__(self, replicator: Replicator) -> None:
        self.clock = FakeClock()
        self.spawn = FakeSpawn()
        self.closing = threading.Event()
        self.replicator = replicator
        replicator_start(replicator=replicator, actor=None)
        self.run = Run.objects.create(replicator=replicator)
        self.supervisor = self.another()

    def another(self) -> Supervisor:
        return Supervisor(
            self.run.pk,
            spawn=self.spawn,
            clock=self.clock,
            wait=self.clock.move,
            closing=self.closing,
        )

    @property
    def process(self) -> FakeProcess:
        return self.spawn.started[0]

    def now(self) -> Run:
        return Run.objects.get(pk=self.run.pk)

    def renew(self) -> None:
        Run.objects.update(lease_until=self.clock() + timedelta(seconds=30))

    def runs(self) -> None:
        """The child has come up."""
        run_transition(run=self.now(), event="run_started", started_at=self.clock())
        self.renew()

    def progress(self) -> Progress:
        return Progress.objects.get(replicator=self.replicator)


@pytest.fixture
def stage(replicator: Replicator) -> Stage:
    return Stage(replicator)


def test_it_starts_one_process_with_the_lease_that_the_row_holds(stage: Stage) -> None:
    """Guards the compare-and-set in `Supervisor.begin` and `_start` (CORRECTNESS 29): two
    supervisors would start two processes of one run."""
    assert stage.supervisor.begin()
    assert stage.spawn.leases == [stage.now().lease]
    assert stage.now().pid == stage.process.pid
    assert not stage.another().begin()
    assert len(stage.spawn.started) == 1


def test_a_run_that_stops_by_itself_is_stopped_without_a_failure(stage: Stage) -> None:
    """Guards exit code 0 in `Supervisor._finish`: counted as a failure, every pause would bring the
    back-off."""
    stage.supervisor.begin()
    stage.runs()
    stage.process.code = 0
    assert not stage.supervisor.turn()
    assert (stage.now().state, stage.now().lease) == (RunState.STOPPED, "")
    assert stage.process.ends == 1
    assert stage.progress().failures == 0


def test_an_error_of_the_run_is_counted_and_tried_again_later(stage: Stage) -> None:
    """Guards `failure_note`: without it a run that fails would be started again at once, again and
    again, or never."""
    stage.supervisor.begin()
    stage.runs()
    Run.objects.update(error_code="source:unreachable", error_facts={"host": "h", "port": "1"})
    stage.process.code = 3
    assert not stage.supervisor.turn()
    assert (stage.now().state, stage.now().error_code) == (RunState.FAILED, "source:unreachable")
    progress = stage.progress()
    assert progress.failures == 1
    assert progress.retry_at == stage.clock() + timedelta(seconds=5)
    assert not progress.is_given_up


def test_a_run_that_lost_the_programs_database_says_so_and_is_tried_again(stage: Stage) -> None:
    """Guards exit code 4: a run without a database can't write its error, and would be reported as
    unexpected."""
    stage.supervisor.begin()
    stage.runs()
    stage.process.code = 4
    stage.supervisor.turn()
    assert stage.now().error_code == "run:database-lost"
    assert not stage.progress().is_given_up


def test_a_killed_run_is_lost(stage: Stage) -> None:
    """Guards a death by a signal in `Supervisor._finish`: it is lost, so its place is taken by a
    run that recovers."""
    stage.supervisor.begin()
    stage.runs()
    stage.process.code = -9
    stage.supervisor.turn()
    assert (stage.now().state, stage.now().error_code) == (RunState.LOST, "run:lost")


def test_an_exit_code_nobody_knows_is_an_unexpected_error(stage: Stage) -> None:
    """Guards the last branch of `Supervisor._finish`: a run that ended without a word must not pass
    for stopped."""
    stage.supervisor.begin()
    stage.process.code = 1
    stage.supervisor.turn()
    assert (stage.now().state, stage.now().error_code) == (
        RunState.FAILED,
        "internal:unexpected",
    )


def test_no_run_ends_while_a_process_of_it_lives(stage: Stage) -> None:
    """Guards the loop in `Supervisor._finish` (CORRECTNESS 29): ended in the database first, its
    successor would merge beside a worker that still writes."""
    stage.supervisor.begin()
    stage.process.code = 0
    stage.process.leftovers = 3
    before = stage.clock()
    stage.supervisor.turn()
    assert stage.process.ends == 4
    assert stage.clock() - before == timedelta(seconds=3)
    assert stage.now().state == RunState.STOPPED


def test_a_pause_is_left_to_the_run_for_the_grace_then_terminated_then_killed(
    stage: Stage, settings: Any
) -> None:
    """Guards the steps of `Supervisor._press`: killed at once, a run could not seal what it has
    read; never killed, a pause would not end."""
    settings.STOP_GRACE_SECONDS = 20.0
    stage.supervisor.begin()
    stage.runs()
    replicator_pause(replicator=stage.replicator, actor=None)
    Run.objects.update(stop_asked_at=stage.clock())
    stage.clock.move(19)
    assert stage.supervisor.turn()
    assert not stage.process.is_terminated
    stage.clock.move(1)
    assert stage.supervisor.turn()
    assert stage.process.is_terminated
    stage.renew()
    stage.clock.move(5)
    assert stage.supervisor.turn()
    assert stage.process.code == -9
    assert not stage.supervisor.turn()
    assert stage.now().state == RunState.STOPPED
    assert Event.objects.get(kind="run_stopped").facts == {"killed": True}
    assert stage.progress().failures == 0


def test_a_stop_before_the_start_starts_nothing(stage: Stage) -> None:
    """Guards `Supervisor._give_back`: a pause that comes before the process would else start one
    only to stop it."""
    replicator_pause(replicator=stage.replicator, actor=None)
    assert not stage.supervisor.begin()
    assert stage.spawn.started == []
    assert stage.now().state == RunState.STOPPED


def test_a_closing_worker_asks_its_runs_to_stop_and_what_people_want_stays(stage: Stage) -> None:
    """Guards the stop for the reason `shutdown`: taken for a pause, a restart of the worker would
    leave every replicator paused."""
    stage.supervisor.begin()
    stage.runs()
    stage.closing.set()
    assert stage.supervisor.turn()
    assert (stage.now().is_stop_asked, stage.now().stop_origin) == (True, "shutdown")
    stage.process.code = 0
    stage.supervisor.turn()
    assert stage.now().state == RunState.STOPPED
    stage.replicator.refresh_from_db()
    assert stage.replicator.desired_state == DesiredState.RUNNING
    reconcile_runs(stage.clock())
    assert Run.objects.active().count() == 1


def test_a_closing_worker_starts_nothing(stage: Stage) -> None:
    """Guards the look at `closing` in `Supervisor.begin`: a process started then would be nobody's;
    the run goes back for another worker."""
    stage.closing.set()
    assert not stage.supervisor.begin()
    assert stage.now().supervised_at is None
    assert stage.spawn.started == []


def test_a_run_that_no_longer_renews_its_lease_is_ended(stage: Stage) -> None:
    """Guards `LEASE_MARGIN` (CORRECTNESS 29): a run that hangs is ended only when its own watchdog
    must have ended it, and not before."""
    stage.supervisor.begin()
    stage.runs()
    stage.clock.move(39)
    assert stage.supervisor.turn()
    stage.clock.move(2)
    assert not stage.supervisor.turn()
    assert stage.process.ends == 1
    assert stage.now().state == RunState.LOST


def test_a_supervisor_whose_run_was_taken_over_goes_away(stage: Stage) -> None:
    """Guards `Supervisor._sign`: a supervisor that slept would end a run that another watches by
    now."""
    stage.supervisor.begin()
    stage.runs()
    stage.clock.move(16)
    Run.objects.update(supervisor="another")
    assert not stage.supervisor.turn()
    assert stage.process.ends == 0
    assert stage.now().state == RunState.RUNNING


def test_ten_quiet_minutes_forget_earlier_failures(stage: Stage) -> None:
    """Guards `is_quiet`: failures of last week would count toward the retry time of today."""
    Progress.objects.update(failures=4, error_code="source:unreachable")
    stage.supervisor.begin()
    stage.runs()
    stage.clock.move(599)
    stage.renew()
    stage.supervisor.turn()
    assert stage.progress().failures == 4
    stage.clock.move(1)
    stage.supervisor.turn()
    assert stage.progress().failures == 0


def _fail(stage: Stage, code: str) -> Progress:
    stage.run = Run.objects.create(replicator=stage.replicator)
    stage.supervisor = stage.another()
    stage.supervisor.begin()
    stage.runs()
    Run.objects.filter(pk=stage.run.pk).update(error_code=code)
    stage.spawn.started[-1].code = 3
    stage.supervisor.turn()
    return stage.progress()


def test_the_retry_time_runs_out_and_the_replicator_waits_for_a_person(stage: Stage) -> None:
    """Guards CORRECTNESS on retries without an end: it says why it stopped, and what was captured
    stays. Fails where giving up takes the log or its position with it."""
    Run.objects.update(lease="held")
    store = DjangoStore(stage.run.pk, "held")
    row = SegmentRow(7, "segments/7", 10, 1, Position(70), True, sealed_at=1.0)
    store.record_segment(row, Position(70))
    Replicator.objects.update(options={"retry_minutes": 2})
    run_transition(run=stage.run, event="run_stopped")
    waits = []
    for _ in range(10):
        progress = _fail(stage, "source:unreachable")
        if progress.is_given_up:
            break
        assert progress.retry_at is not None
        waits.append((progress.retry_at - stage.clock()).total_seconds())
        stage.clock.now = progress.retry_at
    assert waits == [5, 10, 20, 40, 80]
    assert Event.objects.get(kind="replicator_given_up").code == "run:retry-time-used-up"
    reconcile_runs(stage.clock.move(3600))
    assert Segment.objects.get().path == "segments/7"
    assert Progress.objects.get().position["value"] == 70
    shown = replicator_badge(stage.replicator)
    assert (shown.state, shown.label) == ("failed", "Failed: source not reachable")
    assert not Run.objects.active().exists()
    replicator_start(replicator=stage.replicator, actor=None)
    reconcile_runs(stage.clock())
    assert Run.objects.active().count() == 1


def test_what_no_retry_can_mend_is_not_tried_again(stage: Stage) -> None:
    """Guards `Retry.NEVER` in `failure_note` and `reconcile._start`: a version that is not
    supported would be asked for ever."""
    run_transition(run=stage.run, event="run_stopped")
    assert _fail(stage, "source:version").is_given_up
    reconcile_runs(stage.clock.move(3600))
    assert not Run.objects.active().exists()


class TestReconcile:
    """Runs follow what was asked."""

    def test_with_one_slot_the_second_replicator_waits_for_the_first(self, settings: Any) -> None:
        """Guards `MAX_RUNS` in `reconcile._start`: more Sparks than the machine has memory for
        would all be killed."""
        settings.MAX_RUNS = 1
        first, second = make_replicator("first"), make_replicator("second")
        for replicator in (first, second):
            replicator_start(replicator=replicator, actor=None)
        clock = FakeClock()
        reconcile_runs(clock())
        reconcile_runs(clock())
        (run,) = Run.objects.active()
        assert run.replicator == first
        replicator_pause(replicator=first, actor=None)
        reconcile_runs(clock())
        reconcile_runs(clock())
        (run,) = Run.objects.active()
        assert run.replicator == second

    def test_a_run_nobody_watches_whose_lease_is_over_is_lost(self, stage: Stage) -> None:
        """Guards `reconcile._end_lost` (CORRECTNESS 29): before the lease's end and the margin it
        may still write; after it nobody else would end it."""
        stage.supervisor.begin()
        stage.runs()
        stage.clock.move(39)
        reconcile_runs(stage.clock())
        assert stage.now().state == RunState.RUNNING
        stage.clock.move(2)
        reconcile_runs(stage.clock())
        assert stage.now().state == RunState.LOST
        assert stage.progress().failures == 1

    def test_a_run_of_another_machine_is_not_killed_by_its_pid_here(self, stage: Stage) -> None:
        """Guards the host name in `reconcile._end_lost`: the pid of another machine is somebody
        else's process here; this test's own, in fact."""
        import os

        Run.objects.update(
            lease=uuid.uuid4().hex,
            lease_until=stage.clock(),
            pid=os.getpid(),
            hostname=f"not-{HOSTNAME}",
        )
        reconcile_runs(stage.clock.move(60))
        assert stage.now().state == RunState.LOST

    def test_a_run_that_should_not_be_is_asked_to_stop(self, stage: Stage) -> None:
        """Guards `reconcile._stop_unwanted`: a pause whose message to the run was lost would never
        come."""
        stage.supervisor.begin()
        stage.runs()
        Replicator.objects.update(desired_state=DesiredState.PAUSED)
        reconcile_runs(stage.clock())
        assert stage.now().is_stop_asked
        assert stage.now().state == RunState.STOPPING


class TestClockSetBack:
    """Times that were written before the clock was set back an hour lie further ahead than any
    wait; taken at their word they would stop everything for that hour."""

    def test_a_failed_replicator_is_tried_again(self, stage: Stage) -> None:
        """Guards `is_impossible` in `reconcile._is_due`: the time of the next try would lie an hour
        ahead."""
        stage.supervisor.begin()
        stage.runs()
        Run.objects.update(error_code="source:unreachable", error_facts={"host": "h", "port": "1"})
        stage.process.code = 3
        stage.supervisor.turn()
        stage.clock.move(-3600)
        reconcile_runs(stage.clock())
        assert Run.objects.active().count() == 1

    def test_a_run_whose_supervisor_died_is_taken_over(self, stage: Stage) -> None:
        """Guards the third part of `supervisor.unwatched`: a sign from the future would count as
        fresh for an hour."""
        stage.supervisor.begin()
        stage.runs()
        assert not stage.another().begin()
        stage.clock.move(-3600)
        assert stage.another().begin()

    def test_a_supervisor_goes_on_signing_and_nobody_takes_its_run(self, stage: Stage) -> None:
        """Guards the `abs` in `Supervisor._sign`: it would not sign for an hour, and another would
        take the run over."""
        stage.supervisor.begin()
        stage.runs()
        stage.clock.move(-3600)
        assert stage.supervisor.turn()
        assert not stage.another().begin()

    def test_a_run_that_does_not_stop_is_ended(self, stage: Stage) -> None:
        """Guards the `abs` in `Supervisor._press`: the grace would last an hour longer."""
        stage.supervisor.begin()
        stage.runs()
        replicator_pause(replicator=stage.replicator, actor=None)
        Run.objects.update(stop_asked_at=stage.clock() + timedelta(hours=1))
        stage.renew()
        stage.supervisor.turn()
        assert stage.process.is_terminated

    def test_the_retry_time_is_not_lengthened(self, stage: Stage) -> None:
        """Guards the `min` in `failure_note`: failing since a time in the future, a replicator
        would be tried an hour longer than people asked."""
        stage.supervisor.begin()
        stage.runs()
        later = stage.clock() + timedelta(hours=1)
        Progress.objects.update(failing_since=later, failures=2)
        Run.objects.update(error_code="source:unreachable", error_facts={"host": "h", "port": "1"})
        stage.process.code = 3
        stage.supervisor.turn()
        assert stage.progress().failing_since == stage.clock()
