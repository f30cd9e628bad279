"""Totals added up by the database are those of the tables looked at one by one; metrics over time
are thinned honestly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.models import Replicator
from runners.metrics import charts
from runners.metrics.record import prune_metrics, record_metrics
from runners.metrics.status import table_lag, worst_lag
from runners.metrics.totals import lag_facts, totals_of
from runners.models import Progress, ReplicatorMetric, Table
from runners.services import progress_of
from runners.states import TableState
from tests.app.factories import make_replicator

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

_moments = st.none() | st.integers(0, 900).map(lambda s: NOW - timedelta(seconds=s))
_rows = st.fixed_dictionaries(
    {
        "state": st.sampled_from([str(s) for s in TableState]),
        "is_snapshot_done": st.booleans(),
        "lag_seconds": st.none() | st.sampled_from([0.0, 0.5, 7.0, 90.0]),
        "is_chosen": st.booleans(),
        "unmerged_since": _moments,
        "error_since": _moments,
        "inserts": st.integers(0, 9),
        "rows_snapshotted": st.integers(0, 9),
    }
)


@settings(max_examples=120, deadline=None)
@given(st.lists(_rows, max_size=6), _moments, st.booleans())
def test_totals_equal_the_tables_one_by_one(
    django_db_setup: None, rows: list[dict[str, object]], facts_at: datetime | None, is_live: bool
) -> None:
    Replicator.objects.all().delete()
    replicator = make_replicator()
    Table.objects.all().delete()
    tables = [Table(replicator=replicator, schema_name="s", name=str(n), **r) for n,
        r in enumerate(rows)]  # fmt: skip
    Table.objects.bulk_create(tables)
    Progress.objects.update(facts_at=facts_at)
    progress = progress_of(replicator)

    found = totals_of([(replicator, progress, is_live)], NOW)[replicator.pk]

    kept = [t for t in tables if t.is_chosen and t.state != "removed"]
    lags = [table_lag(lag_facts(t, progress, is_live=is_live), NOW) for t in kept]
    assert found.lag_seconds == worst_lag(lags)
    assert found.tables == len(kept)
    assert found.failing == sum(t.state == "failing" for t in kept)
    assert found.changes == sum(t.inserts for t in kept)
    assert found.rows_copied == sum(t.rows_snapshotted for t in kept)


def _samples(replicator: Replicator, *values: tuple[int, float | None, int]) -> None:
    """(seconds before now, lag, changes) every ten seconds."""
    for ago, lag, changes in values:
        ReplicatorMetric.objects.create(
            replicator=replicator, at=NOW - timedelta(seconds=ago), resolution_seconds=10,
            lag_worst_seconds=lag, lag_median_seconds=lag, changes=changes,
        )  # fmt: skip


def test_a_sum_of_all_tables_is_recorded_once_for_every_moment(replicator: Replicator) -> None:
    Table.objects.filter(name="orders").update(inserts=5, updates=2, lag_seconds=3.0)
    Table.objects.filter(name="customers").update(deletes=1, lag_seconds=1.0, rows_snapshotted=4)
    for seconds in (0, 4):
        record_metrics(replicator, NOW + timedelta(seconds=seconds))
    rows = ReplicatorMetric.objects.order_by("resolution_seconds")
    assert [r.resolution_seconds for r in rows] == [10, 60]
    one = rows[0]
    assert (one.changes, one.rows_snapshotted) == (8, 4)
    assert (one.lag_worst_seconds, one.lag_median_seconds) == (3.0, 2.0)
    prune_metrics(NOW + timedelta(hours=2))
    assert [r.resolution_seconds for r in ReplicatorMetric.objects.all()] == [60]


def test_rates_are_growth_a_second_and_a_counter_that_fell_is_none(replicator: Replicator) -> None:
    _samples(replicator, (40, 1.0, 100), (30, 2.0, 200), (20, 3.0, 50), (10, None, 150))
    points = charts.series(replicator, charts.RANGES["1h"], NOW).points
    assert [p.changes_rate for p in points] == [None, 10.0, 0.0, 10.0]
    assert [p.lag_worst for p in points] == [1.0, 2.0, 3.0, None]


def test_a_time_without_a_run_is_a_gap_and_not_a_slope(replicator: Replicator) -> None:
    _samples(replicator, (600, 1.0, 0), (590, 1.0, 10), (20, 1.0, 5000), (10, 1.0, 5010))
    points = charts.series(replicator, charts.RANGES["1h"], NOW).points
    assert [p.changes_rate for p in points] == [None, 1.0, None, None, 1.0]
    assert points[2].lag_worst is None
    path = charts.line_path([p.changes_rate for p in points], 100, 10)
    assert path == "M25.0 0.0M100.0 0.0"


def test_a_chart_draws_the_same_lines_whatever_goes_on(replicator: Replicator) -> None:
    """Guards `Series.columns`: the line of first copies came and went, and left that of changes
    flat while it was there."""
    for number in range(12):
        ReplicatorMetric.objects.create(
            replicator=replicator, at=NOW - timedelta(seconds=10 * (12 - number)),
            resolution_seconds=10, rows_snapshotted=min(number, 8) * 1000,
        )  # fmt: skip
    found = charts.series(replicator, charts.RANGES["1h"], NOW)
    long_ago = charts.Series(found.range, (*found.points, *found.points[-3:] * 9), None, None)
    never = charts.Series(found.range, found.points[-3:], None, None)
    for drawn in (found, long_ago, never):
        lines = {name: len(lines) for name, lines in drawn.columns().items() if name != "at"}
        assert lines == {"changes": 1, "copied": 1, "lag": 2}
    assert max(v or 0.0 for v in found.columns()["copied"][0]) == 100.0
    assert max(v or 0.0 for v in found.columns()["changes"][0]) == 0.0


def test_percentiles_are_over_every_sample_of_the_range(replicator: Replicator) -> None:
    _samples(replicator, *((10 * n, float(n), 0) for n in range(1, 101)), (5000, 9999.0, 0))
    found = charts.series(replicator, charts.RANGES["1h"], NOW)
    assert found.lag_p50 == 50.5
    assert found.lag_p99 is not None
    assert 99 <= found.lag_p99 <= 100


def test_what_was_measured_long_ago_is_no_present_rate(replicator: Replicator) -> None:
    _samples(replicator, (90, 1.0, 0), (80, 1.0, 100))
    assert charts.recent([replicator.pk], NOW)[replicator.pk].rate is None
    _samples(replicator, (10, 1.0, 170))
    assert charts.recent([replicator.pk], NOW)[replicator.pk].rate == pytest.approx(170 / 80)
