"""Who uses the shared Spark, and how it is started and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replicators.config import InvalidConfig
from replicators.options import Options
from runners.supervision import sharing
from runners.supervision.jobs import shares_spark
from tests.app.factories import make_replicator


class Child:
    """A keeper's process, which ends when told."""

    pid = 1

    def __init__(self) -> None:
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.children: list[Child] = []
        self.shared = sharing.SharedSpark(self.spawn, lambda: self.now)  # type: ignore[arg-type]

    def spawn(self, folder: Path) -> Child:
        self.children.append(Child())
        return self.children[-1]

    def starts_after(self, seconds: float) -> bool:
        """Whether one is started so long after the last one's end, and not a moment before."""
        count = len(self.children)
        self.now += seconds - 0.1
        self.shared.keep()
        before = len(self.children)
        self.now += 0.2
        self.shared.keep()
        return before == count < len(self.children)


@pytest.fixture
def clock(tmp_path: Path, settings: Any) -> Clock:
    from dataclasses import replace

    settings.RUNNER = replace(settings.RUNNER, spark_shared_dir=str(tmp_path))
    return Clock()


def test_it_is_started_again_with_growing_waits(clock: Clock) -> None:
    """Guards `SharedSpark`: a JVM that can't start would be started each second by each run."""
    clock.shared.keep()
    clock.shared.keep()
    assert len(clock.children) == 1
    for seconds in (2, 4, 8, 16, 32, 60, 60):
        clock.children[-1].returncode = 1
        clock.shared.keep()
        assert clock.starts_after(seconds), seconds
    clock.now += sharing.QUIET_SECONDS + 1
    clock.children[-1].returncode = -9
    clock.shared.keep()
    assert clock.starts_after(2), "a long life resets the wait"


def test_one_that_nobody_needed_is_started_at_once(clock: Clock) -> None:
    """Guards the exit code 0: the next run would wait as after a failure."""
    clock.shared.keep()
    clock.children[-1].returncode = 0
    clock.shared.keep()
    assert len(clock.children) == 2


@pytest.mark.parametrize(
    ("installation", "own", "wanted"),
    [
        ("own", "default", False),
        ("shared", "default", True),
        ("own", "shared", True),
        ("shared", "own", False),
    ],
)
@pytest.mark.django_db
def test_a_replicators_choice_wins(
    settings: Any, installation: str, own: str, *, wanted: bool
) -> None:
    """Guards `shares_spark`."""
    settings.SPARK = installation
    assert shares_spark(make_replicator(options={"spark": own})) is wanted


@pytest.mark.parametrize(
    ("name", "value"), [("spark_remote", "sc://host"), ("spark_master", "yarn")]
)
@pytest.mark.django_db
def test_a_spark_elsewhere_is_not_shared(settings: Any, name: str, value: str) -> None:
    """Guards `shares_spark`: the installation's own Spark was passed over."""
    from dataclasses import replace

    settings.SPARK = "shared"
    settings.RUNNER = replace(settings.RUNNER, **{name: value})
    assert not shares_spark(make_replicator())


def test_another_word_is_refused() -> None:
    """Guards the option's choices."""
    with pytest.raises(InvalidConfig):
        Options.parse({"spark": "none"})
