"""How long a run waits before it looks at its tables again."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from runners.engine import run
from runners.engine.changelog.backlog import Backlog
from runners.engine.idle import Idle


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run on the shared Spark that has nothing to do. Its long pause would be seen."""
    monkeypatch.setattr(run, "OWN", Idle(turn=0.01))
    found: Any = run.EngineRun.__new__(run.EngineRun)
    found._is_shared, found._idle = True, Idle(turn=30.0)
    found._stop = threading.Event()
    found._backlog = Backlog([], 0)
    found._tables = SimpleNamespace(waits_for_jobs=lambda **_: True)
    return found


def test_a_calm_run_is_woken_by_what_is_decoded(waiting: Any) -> None:
    """Guards `Backlog.stirred`: a change waited a second for the next look."""
    timer = threading.Timer(0.05, waiting._backlog.decoded, ([1], []))
    timer.start()
    began = time.monotonic()
    waiting._pause(is_copying=False)
    assert 0.04 < time.monotonic() - began < 10
    assert not waiting._backlog.stirred.is_set(), "the next pause would be none"


@pytest.mark.parametrize("work", ["something to start", "own Spark"])
def test_a_run_with_work_looks_soon(waiting: Any, work: str) -> None:
    """Guards `_pause`: a merge that becomes due would be started a second late."""
    waiting._tables = SimpleNamespace(waits_for_jobs=lambda **_: work == "own Spark")
    waiting._is_shared = work != "own Spark"
    began = time.monotonic()
    waiting._pause(is_copying=False)
    assert time.monotonic() - began < 10
