"""When the change log is at its limit, from its growth."""

from __future__ import annotations

from runners.engine.capture.growth import SECONDS, Growth


def test_the_hours_follow_from_the_growth_of_the_last_minutes() -> None:
    """Guards the figure that warns people: steady growth tells it, old growth is forgotten."""
    growth = Growth()
    assert growth.hours_until(100) is None
    growth.measure(0.0, 1_000)
    assert growth.hours_until(2_000) is None, "one size is no growth"
    growth.measure(30.0, 1_030)
    assert growth.hours_until(2_000) is None, "too short a time to tell"
    growth.measure(100.0, 1_100)
    assert growth.hours_until(4_700) == 1.0
    assert growth.hours_until(1_100) == 0.0, "it is there"
    for second in range(200, 200 + 2 * round(SECONDS), 10):
        growth.measure(float(second), 1_200)
    assert growth.hours_until(4_700) is None, "it has not grown for ten minutes"


def test_a_log_that_is_pruned_lasts() -> None:
    """Guards against a figure below zero."""
    growth = Growth()
    growth.measure(0.0, 5_000)
    growth.measure(100.0, 1_000)
    assert growth.hours_until(10_000) is None
