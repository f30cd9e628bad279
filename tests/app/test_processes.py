"""Real processes: nothing of a killed run is left, and a living one is adopted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from replicators.models import Replicator
from runners.engine.processes import (
    LEASE,
    UNKNOWN,
    Adopted,
    Spawn,
    is_alive,
    session_members,
    spawn_command,
    started_at,
)
from runners.models import Run
from runners.services import replicator_pause, replicator_start
from runners.states import RunState
from runners.supervision.supervisor import Supervisor

CHILD = Path(__file__).parents[1] / "fakes" / "child.py"


def until(condition: Callable[[], Any], seconds: float = 15.0) -> None:
    """Wait for a state, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.02)


class Fake:
    """Starts the fake child and knows its pids."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pids = folder / "pids"
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("FAKE_CHILD_PIDS", str(self.pids))
        self.mode("wait")
        self.spawn: Spawn = spawn_command(folder, folder, (sys.executable, str(CHILD)))

    def mode(self, name: str) -> None:
        self._monkeypatch.setenv("FAKE_CHILD", name)

    def wait(self) -> tuple[int, int]:
        until(self.pids.exists)
        child, worker = self.pids.read_text().split()
        return int(child), int(worker)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    made = Fake(tmp_path, monkeypatch)
    yield made
    if made.pids.exists():
        for pid in session_members(made.wait()[0]):
            os.kill(pid, signal.SIGKILL)


def test_a_run_has_a_session_of_its_own_and_ends_with_all_of_it(fake: Fake) -> None:
    """Guards `start_new_session` and `end_session` (CORRECTNESS 29): a Python worker in a process
    group of its own outlives the run's group, and would go on writing."""
    process = fake.spawn("run", "lease")
    child, worker = fake.wait()
    assert process.pid == child
    assert os.getsid(worker) == child
    until(lambda: os.getpgid(worker) != child)
    os.kill(child, signal.SIGKILL)
    until(lambda: process.poll() == -signal.SIGKILL)
    assert session_members(child) == [worker]
    assert process.end()
    until(lambda: not is_alive(worker, None))


def test_an_adopted_process_is_known_by_pid_and_start_time(fake: Fake) -> None:
    """Guards `Adopted`: by its pid alone, a stranger's process with the number of a dead run would
    be watched, and killed."""
    process = fake.spawn("run", "lease")
    child, worker = fake.wait()
    start = started_at(child)
    assert start is not None
    assert Adopted(child, start).poll() is None
    assert Adopted(child, start - 1).poll() == UNKNOWN
    assert Adopted(child, start - 1).end()
    assert is_alive(child, start)
    assert Adopted(child, start).end()
    until(lambda: process.poll() is not None)
    assert not is_alive(worker, None)


def test_a_clock_that_is_set_makes_no_process_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `started_at`: by the clock's time a living run would be taken for gone, and started
    twice. What earlier versions recorded is the same number."""
    own = os.getpid()
    fields = Path(f"/proc/{own}/stat").read_text().rpartition(")")[2].split()
    start = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    assert started_at(own) == start
    boot = psutil.boot_time()
    clock = iter([boot, boot, boot - 3600.0])
    for module in (psutil, psutil._pslinux):
        monkeypatch.setattr(module, "boot_time", lambda: next(clock, boot - 3600.0))
    assert started_at(own) == start
    assert is_alive(own, start)


@pytest.mark.parametrize("error", [psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied])
def test_a_process_that_ends_while_it_is_looked_at_is_not_alive(
    error: type[psutil.Error], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `is_alive`, `started_at` and `session_members`: between two reads a process may end or
    be a zombie."""

    def ended(process: psutil.Process) -> Any:
        raise error(process.pid)

    own = os.getpid()
    with monkeypatch.context() as patched:
        patched.setattr(psutil.Process, "status", ended)
        assert not is_alive(own, None)
        assert session_members(os.getsid(own)) == []
    monkeypatch.setattr(psutil.Process, "create_time", ended)
    assert started_at(own) is None
    assert not is_alive(own, 1.0)


def test_a_zombie_is_not_alive() -> None:
    """Guards `is_alive`: nobody may have collected a run that ended."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.pid_exists(child.pid)
    assert not is_alive(child.pid, None)
    child.wait()


def test_the_lease_is_not_in_the_arguments_which_everybody_can_read(fake: Fake) -> None:
    """Guards `spawn_command`: with a lease anybody who reaches the database can write as the
    run."""
    fake.spawn("run", "a-lease")
    child, _ = fake.wait()
    assert "a-lease" not in " ".join(psutil.Process(child).cmdline())
    assert psutil.Process(child).environ()[LEASE] == "a-lease"


def test_the_output_of_a_run_is_its_users_alone(fake: Fake, tmp_path: Path) -> None:
    """Guards `replicators.private`: what a JVM writes by itself may hold rows."""
    logs = tmp_path / "var" / "run-logs"
    spawn_command(tmp_path, logs, (sys.executable, str(CHILD)))("run", "lease")
    fake.wait()
    modes = [p.stat().st_mode & 0o777 for p in (logs.parent, logs, logs / "run.log")]
    assert [oct(m) for m in modes] == ["0o700", "0o700", "0o600"]


@pytest.mark.django_db(transaction=True)
class TestSupervised:
    """The supervisor with real processes."""

    @pytest.fixture
    def run(self, replicator: Replicator) -> Run:
        replicator_start(replicator=replicator, actor=None)
        return Run.objects.create(replicator=replicator)

    def _supervise(self, run: Run, fake: Fake, **options: Any) -> threading.Thread:
        from django.db import connection

        def work() -> None:
            Supervisor(run.pk, spawn=fake.spawn, wait=threading.Event().wait, **options).supervise()
            connection.close()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def test_a_stubborn_run_is_stopped_in_the_end_with_its_workers(
        self, run: Run, fake: Fake, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Guards the last step of `Supervisor._press`: a run that ignores SIGTERM would stay for
        ever, and a pause with it."""
        settings.STOP_GRACE_SECONDS = 0.0
        monkeypatch.setattr("runners.supervision.supervisor.KILL_SECONDS", 0.5)
        fake.mode("stubborn")
        thread = self._supervise(run, fake)
        child, worker = fake.wait()
        replicator_pause(replicator=run.replicator, actor=None)
        thread.join(20)
        run.refresh_from_db()
        assert run.state == RunState.STOPPED
        assert not is_alive(child, None)
        assert not is_alive(worker, None)

    def test_an_error_exit_leaves_no_worker_behind(self, run: Run, fake: Fake) -> None:
        """Guards `Supervisor._finish`: without `end` after an exit of the run's own, its workers
        would still be writing when the next run starts."""
        fake.mode("exit:3")
        thread = self._supervise(run, fake)
        child, worker = fake.wait()
        thread.join(20)
        run.refresh_from_db()
        assert run.state == RunState.FAILED
        assert session_members(child) == []
        assert not is_alive(worker, None)

    def test_the_next_supervisor_adopts_a_run_that_outlived_the_last_one(
        self, run: Run, fake: Fake
    ) -> None:
        """Guards `Supervisor._adopt`: started anew instead, two processes would have one run; what
        the adopted one leaves behind ends with it."""
        first = Supervisor(run.pk, spawn=fake.spawn)
        assert first.begin()
        child, worker = fake.wait()
        Run.objects.update(supervised_at=None)
        thread = self._supervise(run, fake)
        until(lambda: Run.objects.get().supervised_at is not None)
        os.kill(child, signal.SIGKILL)
        thread.join(20)
        run.refresh_from_db()
        assert (run.state, run.error_code) == (RunState.LOST, "run:lost")
        assert not is_alive(worker, None)
