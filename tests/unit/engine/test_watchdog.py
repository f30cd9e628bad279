"""The lease is kept only while every step is within its deadline (CORRECTNESS 29)."""

from __future__ import annotations

from runners.engine.settings import RunnerSettings
from runners.engine.store.protocol import MemoryStore
from runners.engine.watchdog import Watchdog


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Unreachable(MemoryStore):
    """A store whose database answers only while it `is_there`."""

    is_there = True
    until = 0.0

    def renew(self, until: float) -> None:
        if not self.is_there:
            raise OSError("the database does not answer")
        super().renew(until)
        self.until = until


def make(
    store: MemoryStore, timer: Clock, clock: Clock | None = None
) -> tuple[Watchdog, list[str]]:
    killed: list[str] = []
    settings = RunnerSettings(lease_seconds=30)
    watchdog = Watchdog(
        store, settings, clock=clock or Clock(), timer=timer, kill=lambda: killed.append("killed")
    )
    return watchdog, killed


def test_a_step_within_its_deadline_keeps_the_lease() -> None:
    """Guards `Watchdog.turn` against ending a healthy run: a deadline counts from the step's own
    beginning."""
    watchdog, killed = make(MemoryStore(), Clock())
    with watchdog.step("merge", 60):
        watchdog.turn()
    assert killed == []


def test_a_step_past_its_deadline_ends_the_process() -> None:
    """Guards `Watchdog.overdue` (CORRECTNESS 29): a step that hangs would keep the lease, and no
    other run could take over."""
    watchdog, killed = make(MemoryStore(), Clock())
    with watchdog.step("merge", 1e-9):
        watchdog.turn()
    assert killed == ["killed"]


def test_a_lease_that_can_not_be_renewed_ends_the_process_before_it_runs_out() -> None:
    """Guards CORRECTNESS 29: past its lease a run could commit beside its successor, which no token
    of ours fences; it ends at two thirds."""
    store, timer = Unreachable(), Clock()
    watchdog, killed = make(store, timer)
    store.is_there = False
    watchdog.turn()
    assert killed == []
    timer.now += 19
    watchdog.turn()
    assert killed == []
    timer.now += 2
    watchdog.turn()
    assert killed == ["killed"]


def test_a_database_that_comes_back_in_time_keeps_the_run() -> None:
    """Guards `_renewed_at` in `Watchdog.turn`: one failed renewal must not end a run whose lease
    still lasts."""
    store, timer = Unreachable(), Clock()
    watchdog, killed = make(store, timer)
    for is_there in (False, True, False, True):
        store.is_there = is_there
        timer.now += 15
        watchdog.turn()
    assert killed == []


def test_another_holder_of_the_lease_ends_the_process_at_once() -> None:
    """Guards fencing: what is done after that would be done beside the other run."""
    store = MemoryStore()
    watchdog, killed = make(store, Clock())
    store.lost = True
    watchdog.turn()
    assert killed == ["killed"]


def test_a_process_that_was_held_up_for_longer_than_its_lease_ends_without_asking_anybody() -> None:
    """Guards fencing: a run that was stopped or suspended and goes on must not wait for a database
    before it ends."""
    store, timer = Unreachable(), Clock()
    watchdog, killed = make(store, timer)
    timer.now += 31
    watchdog.turn()
    assert killed == ["killed"]
    assert store.until == 0.0


def test_the_lease_ends_the_process_also_while_the_database_is_asked() -> None:
    """Guards fencing: a database behind a cut network answers neither yes nor no, and the thread
    that asks it counts nothing."""
    watchdog, killed = make(Unreachable(), timer := Clock())
    timer.now += 29
    assert not watchdog.guard() and killed == []
    timer.now += 2
    assert watchdog.guard() and killed == ["killed"]


def test_a_clock_that_is_set_back_an_hour_neither_ends_the_run_nor_lengthens_its_lease() -> None:
    """Guards that the lease's end is by a timer that nobody sets: by the clock, a run cut off from
    its database would go on for an hour beside the one that took over."""
    store, timer, clock = Unreachable(), Clock(), Clock()
    watchdog, killed = make(store, timer, clock)
    clock.now -= 3600
    timer.now += 10
    watchdog.turn()
    assert killed == []
    assert store.until == clock.now + 30
    store.is_there = False
    timer.now += 21
    watchdog.turn()
    assert killed == ["killed"]
