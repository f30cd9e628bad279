"""The lease is kept only while every step is within its deadline (CORRECTNESS 29)."""

from __future__ import annotations

from runners.engine.settings import RunnerSettings
from runners.engine.store import MemoryStore
from runners.engine.watchdog import Watchdog


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make(store: MemoryStore, clock: Clock) -> tuple[Watchdog, list[str]]:
    killed: list[str] = []
    settings = RunnerSettings(lease_seconds=30)
    return Watchdog(store, settings, clock=clock, kill=lambda: killed.append("killed")), killed


def test_a_step_within_its_deadline_keeps_the_lease() -> None:
    watchdog, killed = make(MemoryStore(), Clock())
    with watchdog.step("merge", 60):
        watchdog.turn()
    assert killed == []


def test_a_step_past_its_deadline_ends_the_process() -> None:
    watchdog, killed = make(MemoryStore(), Clock())
    with watchdog.step("merge", 1e-9):
        watchdog.turn()
    assert killed == ["killed"]


def test_a_lease_that_can_not_be_renewed_ends_the_process_before_it_runs_out() -> None:
    store, clock = MemoryStore(), Clock()
    watchdog, killed = make(store, clock)
    store.lost = True
    watchdog.turn()
    assert killed == []
    clock.now += 21
    watchdog.turn()
    assert killed == ["killed"]
