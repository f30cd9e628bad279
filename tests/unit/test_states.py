"""The state machines as data, and the words a replicator's state is shown with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicators.connectors.problems.message import Retry
from runners.metrics.status import (
    Facts,
    LagFacts,
    Shown,
    replicator_state,
    snapshot_percent,
    table_lag,
    table_shown,
    tables_held,
    worst_lag,
)
from runners.states import (
    COLOURS,
    LABELS,
    RUN_ACTIVE,
    RUN_FINAL,
    RUN_TRANSITIONS,
    TABLE_TRANSITIONS,
    RunState,
    TableState,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN_EVENTS = sorted({e for _, e in RUN_TRANSITIONS})
TABLE_EVENTS = sorted({e for _, e in TABLE_TRANSITIONS})


@given(st.lists(st.sampled_from(RUN_EVENTS), max_size=20))
def test_events_lead_a_run_only_to_known_states_and_never_out_of_a_final_one(
    events: list[str],
) -> None:
    """Guards `RUN_TRANSITIONS`: a way out of a final state would let an ended run write again
    beside its successor (CORRECTNESS 29)."""
    state = RunState.STARTING
    for event in events:
        following = RUN_TRANSITIONS.get((state, event))
        if state in RUN_FINAL:
            assert following is None
        state = following or state
        assert state in RUN_ACTIVE | RUN_FINAL


@given(st.lists(st.sampled_from(TABLE_EVENTS), max_size=20))
def test_a_removed_table_comes_back_only_by_being_added(events: list[str]) -> None:
    """Guards `TABLE_TRANSITIONS`: a late event of a job would bring a removed table back without a
    fresh copy."""
    state = TableState.WAITING
    for event in events:
        following = TABLE_TRANSITIONS.get((state, event))
        if state is TableState.REMOVED:
            assert (following is None) == (event != "table_added")
        state = following or state


def test_every_state_has_a_label_and_a_colour() -> None:
    """Guards `LABELS` and `COLOURS`: a state without them is a page that fails while it is in that
    state."""
    for state in [*RunState, *TableState, "paused", "stalled"]:
        assert LABELS[state]
        assert COLOURS[state]


@pytest.mark.parametrize(
    ("facts", "state", "label"),
    [
        (Facts("paused"), "paused", "Paused"),
        (Facts("running"), "starting", "Starting"),
        (Facts("running", live_runs=4, max_runs=4), "waiting", "Waiting: 4 of 4 replicators run"),
        (Facts("running", RunState.STARTING), "starting", "Starting"),
        (Facts("running", RunState.STARTING, failures=1), "starting", "Starting again"),
        (Facts("running", RunState.RUNNING), "running", "Running"),
        (
            Facts("running", RunState.RUNNING, is_log_full=True),
            "stalled",
            "Stalled: change log full",
        ),
        (
            Facts("running", RunState.RUNNING, is_log_short=True),
            "running",
            "Running, log running short",
        ),
        (
            Facts("running", RunState.RUNNING, is_log_full=True, failing_tables=1),
            "stalled",
            "Stalled: change log full, 1 table failing",
        ),
        (
            Facts("running", RunState.RUNNING, failing_tables=2),
            "running",
            "Running, 2 tables failing",
        ),
        (
            Facts("running", RunState.RUNNING, tables=2, failing_tables=2),
            "failing",
            "All 2 tables failing",
        ),
        (
            Facts("running", RunState.RUNNING, tables=1, failing_tables=1, is_log_full=True),
            "failing",
            "Its only table failing, change log full",
        ),
        (Facts("paused", RunState.RUNNING), "stopping", "Pausing"),
        (Facts("running", RunState.STOPPING), "stopping", "Stopping"),
        (Facts("paused", is_deleting=True), "deleting", "Deleting"),
        (
            Facts("running", retry_at=NOW + timedelta(seconds=40), failures=3),
            "failing",
            "Failed, retrying in 40 s",
        ),
        (
            Facts("running", is_given_up=True, error_code="source:login-refused"),
            "failed",
            "Failed: login refused",
        ),
    ],
)
def test_a_state_is_made_from_what_was_asked_and_what_is(
    facts: Facts, state: str, label: str
) -> None:
    """Guards the order of questions in `status.replicator_state`: of several facts, the one that a
    person has to act on is shown."""
    shown = replicator_state(facts, NOW)
    assert (shown.state, shown.label) == (state, label)


@pytest.mark.parametrize(
    ("state", "is_live", "desired", "shown"),
    [
        ("running", True, "running", ("replicating", "green")),
        ("failing", True, "running", ("replicating", "green")),
        ("failing", False, "running", ("stopped", "red")),
        ("failed", False, "running", ("stopped", "red")),
        ("deleting", True, "paused", ("stopped", "amber")),
        ("paused", False, "paused", ("paused", "amber")),
        ("stopping", False, "running", ("waiting", "slate")),
        ("starting", False, "running", ("waiting", "slate")),
        ("waiting", False, "running", ("waiting", "slate")),
    ],
)
def test_a_table_is_not_shown_to_replicate_while_nothing_copies_it(
    state: str, is_live: bool, desired: str, shown: tuple[str, str]
) -> None:
    """Guards `status.tables_held`: tables of a replicator that failed were green."""
    held = tables_held(Shown(state, "", ""), is_live=is_live, desired=desired)
    found = table_shown(TableState.REPLICATING, held)
    assert (found.state, found.colour) == shown
    assert table_shown(TableState.FAILING, held).state == "failing"
    assert table_shown(TableState.REMOVED, held).state == "removed"


def _lag(**changes: object) -> float | None:
    facts = {
        "state": TableState.REPLICATING,
        "is_snapshot_done": True,
        "lag_seconds": 0.0,
        "unmerged_since": NOW - timedelta(seconds=100),
        "error_since": None,
        "facts_at": NOW,
        "is_live": True,
        **changes,
    }
    return table_lag(LagFacts(**facts), NOW)  # type: ignore[arg-type]


def test_lag_is_what_the_run_says_while_it_says_something() -> None:
    """Guards `status.table_lag` for fresh metrics: reckoned from `unmerged_since` instead, an idle
    table would seem to lag."""
    assert _lag() == 0.0
    assert _lag(lag_seconds=3.0) == 3.0


def test_lag_is_unknown_before_and_during_a_snapshot() -> None:
    """Guards `status.table_lag` for tables that are not copied yet: 0 would say that the copy is
    level (CORRECTNESS 33)."""
    assert _lag(state=TableState.WAITING, is_snapshot_done=False) is None
    assert _lag(state=TableState.SNAPSHOTTING, is_snapshot_done=False) is None


def test_lag_grows_while_nothing_runs_or_the_run_is_silent() -> None:
    """Guards `FRESH_SECONDS` in `status.table_lag` (CORRECTNESS 33): the last metric of a dead run
    would stay on the page as if it were true."""
    assert _lag(is_live=False) == 100.0
    assert _lag(facts_at=NOW - timedelta(seconds=60)) == 100.0
    assert _lag(is_live=False, unmerged_since=None, facts_at=NOW - timedelta(seconds=60)) == 60.0


def test_a_replicators_lag_is_its_worst_tables() -> None:
    """Guards `status.worst_lag`: left out, a table of unknown lag would make the replicator look
    level."""
    assert worst_lag([1.0, 7.0]) == 7.0
    assert worst_lag([1.0, None]) is None
    assert worst_lag([]) is None


def test_a_snapshot_is_at_100_percent_only_when_it_is_done() -> None:
    """Guards `status.snapshot_percent`: the total is an estimate, and 100 % before the publishing
    would promise rows that nobody can read."""
    assert snapshot_percent(0, None, False) == 0
    assert snapshot_percent(5, None, False) is None
    assert snapshot_percent(50, 100, False) == 50
    assert snapshot_percent(120, 100, False) is None
    assert snapshot_percent(120, 100, True) == 100


def test_waiting_doubles_up_to_ten_minutes_and_starts_slower_where_a_person_must_act() -> None:
    """Guards `backoff.delay_seconds`: without its limits a source that is down is asked every few
    seconds, or once a day."""
    from runners.supervision.backoff import delay_seconds

    assert [delay_seconds(n, Retry.AUTO) for n in (1, 2, 3, 8, 50)] == [5, 10, 20, 600, 600]
    assert delay_seconds(1, Retry.AFTER_FIX) == 60
