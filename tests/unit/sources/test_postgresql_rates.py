"""The rate by which the headroom of a slot is reported does not follow each burst."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from replicators.sources.postgresql.rates import LEAST_SECONDS, WINDOW_SECONDS, LogRate

MB = 1_000_000


def fed(rates: Iterable[float], step: int = 5) -> list[float | None]:
    """What is said after each `step` seconds with these bytes a second."""
    rate, end, said = LogRate(), 0, []
    rate.add(1000.0, end)
    for number, each in enumerate(rates, 1):
        end += int(each * step)
        rate.add(1000.0 + number * step, end)
        said.append(rate.bytes_per_second)
    return said


def test_nothing_is_said_before_a_minute_was_seen() -> None:
    said = fed([MB] * 40)
    first = int(LEAST_SECONDS / 5) - 1
    assert said[:first] == [None] * first
    assert said[first:] == pytest.approx([MB] * (40 - first))


def test_a_burst_does_not_make_days_into_hours() -> None:
    """Guards the mean: measured over ten seconds, 4 days were 1 day 2 hours within a minute."""
    quiet = [MB] * int(WINDOW_SECONDS / 5)
    before, *_, after = fed([*quiet, *[4 * MB] * 6])[len(quiet) - 1 :]
    assert before == pytest.approx(MB)
    assert after is not None
    assert MB < after < 1.2 * MB


def test_a_lasting_rate_is_taken_over() -> None:
    said = fed([*[MB] * 120, *[4 * MB] * 600])[-1]
    assert said == pytest.approx(4 * MB, rel=0.05)


def test_a_clock_that_is_set_back_begins_anew() -> None:
    rate = LogRate()
    rate.add(1000.0, 0)
    rate.add(1100.0, 100 * MB)
    assert rate.bytes_per_second == pytest.approx(MB)
    rate.add(500.0, 100 * MB)
    assert rate.bytes_per_second is None
