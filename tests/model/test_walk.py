"""What keeps a walk going, and what is told of it."""

from __future__ import annotations

import json
import signal
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.model.keeper import Keeper
from tests.model.metrics import Metrics
from tests.model.page import page


class FakeWorld:
    """A world whose runs are only said to be there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = 0
        self.start()

    def flag(self, name: str) -> Path:
        return self.folder / name

    def arm(self, name: str) -> None:
        self.flag(name).unlink(missing_ok=True)

    def start(self) -> None:
        self.started += 1
        self.child: Any = SimpleNamespace(
            pid=self.started, code=None, run=SimpleNamespace(error_code=""),
            end=lambda: None, tail=lambda: "its last lines",
        )  # fmt: skip
        child = self.child
        child.is_dead = lambda: child.code is not None
        child.wait = lambda: child.code


@pytest.fixture
def world(tmp_path: Path) -> Any:
    return FakeWorld(tmp_path)


def test_a_run_that_died_where_it_was_told_to_is_started_again(world: Any) -> None:
    """Guards the counting of deaths: each is known by the process that wrote the flag."""
    keeper = Keeper(world, Counter())
    keeper.armed = ["target_merged", "round_ended"]
    world.flag("target_merged").write_text("1")
    world.child.code = -signal.SIGKILL
    keeper.tend()
    assert (world.started, keeper.armed) == (2, ["round_ended"])
    assert keeper.counts == {"died at target_merged": 1}
    keeper.disarm()
    assert world.flag("round_ended").read_text() == "off" and not keeper.armed


@pytest.mark.parametrize(
    ("code", "error"),
    [(-signal.SIGKILL, ""), (1, "internal:unexpected"), (3, "source:slot-missing"), (0, "")],
)
def test_a_run_that_ended_without_a_reason_fails_the_walk(
    world: Any, code: int, error: str
) -> None:
    """Guards that a run which dies of itself is a fault and no step of the walk."""
    keeper = Keeper(world, Counter())
    world.child.code, world.child.run.error_code = code, error
    with pytest.raises(AssertionError, match="its last lines"):
        keeper.tend()


def test_a_run_that_could_not_reach_its_source_is_started_again(world: Any) -> None:
    """Guards `Keeper._count`: a fault that passes, as the supervisor would see it, must not fail a
    walk, and is counted by its code."""
    keeper = Keeper(world, Counter())
    world.child.code, world.child.run.error_code = 3, "source:unreachable"
    keeper.tend()
    assert keeper.counts == {"ended by source:unreachable": 1} and world.started == 2


def test_the_page_says_how_far_each_walk_went_and_how_it_ended() -> None:
    """A page that hid a walk which failed, or was cut short, would be worse than none."""
    clean = Metrics("postgresql", "iceberg", 7, 5000, steps=1200, seconds=1800.0)
    clean.lags([3.0, 1.0, 2.0])
    clean.counts = {"kill": 3}
    failed = Metrics("mysql", "delta", 8, 50, steps=9, failure="Wrong: accounts:\nlost x1")
    text = page([json.loads(json.dumps(asdict(f))) for f in (clean, failed)])
    assert "| 7 | 1,200 of 5,000 | 30 |" in text and "| 2.0, 3.0, 3.0 s |" in text
    assert "| Wrong: accounts: lost x1 |" in text and "kill 3." in text
