"""What a service allows within 24 hours is never used up, whatever the interval
(`replicators.connectors.budgets`)."""

from __future__ import annotations

from collections import deque

import pytest

from replicators.connectors.budgets import (
    LONGEST_SECONDS,
    Budget,
    Use,
    counted,
    spared,
    table_wait,
    used,
    why_slower,
)

DAY = 86_400
BUDGET = Budget(a_table=1500, in_all=100_000, noun="load jobs")


def most_in_a_day(interval: float, days: int, *, quiet: float = 0.0) -> int:
    """The most load jobs of any 24 hours, of a table that always has changes. `quiet`: seconds in
    which it had none, in the middle of each day."""
    now, spent, times, most = 0.0, {}, deque[float](), 0
    while now < days * DAY:
        if not 0 <= now % DAY - DAY / 2 < quiet:
            spent = counted(spent, 1, now)
            times.append(now)
        while times and times[0] <= now - DAY:
            times.popleft()
        most = max(most, len(times))
        now += max(interval, spared(BUDGET.a_table, used(spent, now)))
    return most


@pytest.mark.parametrize("quiet", [0.0, 3600.0, 40_000.0])
def test_no_day_has_more_load_jobs_than_are_allowed(quiet: float) -> None:
    """Guards `spared`: also after quiet hours, whose unused jobs may be used in a burst; Google's
    day is any 24 hours."""
    assert most_in_a_day(0.1, 4, quiet=quiet) < 0.96 * BUDGET.a_table


def test_an_even_pace_that_fits_is_never_slowed_down() -> None:
    """Guards the default of 90 s, which uses 960 of 1,500."""
    assert most_in_a_day(90.0, 3) == DAY // 90
    assert spared(1500, 1000) < 90


def test_hours_outside_of_the_window_are_forgotten_and_a_clock_set_back_counts_nothing_twice() -> (
    None
):
    spent = counted({}, 5, 0.0)
    assert used(spent, DAY) == 5  # the hour that began 24 hours ago is not over yet
    assert used(spent, DAY + 3600) == 0
    assert counted(spent, 1, 2 * DAY) == {"48": 1}
    assert used(counted({}, 5, DAY), 0.0) == 0


def test_beyond_the_limit_a_table_is_still_tried_every_hour() -> None:
    """Guards the other programs of a project: what they use is not counted here, and a quota may
    come back before our count says so."""
    assert spared(1500, 1500) == spared(1500, 9000) == LONGEST_SECONDS


def test_many_tables_share_what_the_project_allows() -> None:
    """Guards `tables`: 200 tables every 90 s are 192,000 load jobs a day, and none of the tables
    comes near its own limit."""
    busy = Use(in_all=73_000, most=365, tables=200)
    wait = table_wait(BUDGET, 365, busy.in_all, busy.tables)
    assert 200 * DAY / wait < BUDGET.in_all
    told = why_slower(BUDGET, 365, busy, 90.0)
    assert told.endswith("73,000 of 100,000 load jobs of all tables of the last 24 hours are used")


def test_the_page_says_why_a_table_is_merged_less_often() -> None:
    busy = Use.of([{"9": 1310}], 9 * 3600.0)
    assert why_slower(BUDGET, 1310, busy, 90.0) == (
        "merged every 199 s, since 1,310 of 1,500 load jobs of the last 24 hours are used"
    )
    assert why_slower(BUDGET, 1500, busy, 90.0).startswith("merged once an hour, since 1,500 of")
    assert why_slower(BUDGET, 960, busy, 90.0) == ""
