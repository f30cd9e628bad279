"""Metrics over time for the pages' charts: sums of a replicator's tables, thinned to what a chart
can show. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import quantiles
from typing import Any

from replicators.models import Replicator
from runners.models import ReplicatorMetric, Table, TableMetric

RATE_SECONDS = 60
FRESH_SECONDS = 40
SPARK_POINTS = 60


@dataclass(frozen=True, slots=True)
class Range:
    """A selectable span of time, and the time between its points."""

    name: str
    label: str
    seconds: int
    resolution_seconds: int
    bucket_seconds: int


RANGES = {
    r.name: r
    for r in (
        Range("1h", "1 hour", 3600, 10, 10),
        Range("24h", "24 hours", 86_400, 60, 240),
        Range("7d", "7 days", 7 * 86_400, 60, 1800),
    )
}


@dataclass(frozen=True, slots=True)
class Point:
    """Metrics at one moment: lags in seconds, rates in rows a second; None where nothing was
    measured."""

    at: float
    lag_worst: float | None
    lag_median: float | None
    changes_rate: float | None
    copied_rate: float | None

    @property
    def moment(self) -> datetime:
        """Its time."""
        return datetime.fromtimestamp(self.at, UTC)


@dataclass(frozen=True, slots=True)
class Series:
    """Points of a range, oldest first, and percentiles of the worst table's lag over all samples in
    it."""

    range: Range
    points: tuple[Point, ...]
    lag_p50: float | None
    lag_p99: float | None

    @property
    def newest(self) -> tuple[Point, ...]:
        """Newest first."""
        return self.points[::-1]

    def columns(self) -> dict[str, Any]:
        """The form that the script draws: the lines of each chart, always the same ones. First
        copies have a chart of their own: they are so much faster than changes that they would
        flatten the changes' line."""
        return {
            "at": [p.at for p in self.points],
            "changes": [[p.changes_rate for p in self.points]],
            "copied": [[p.copied_rate for p in self.points]],
            "lag": [[p.lag_worst for p in self.points], [p.lag_median for p in self.points]],
        }


_Sample = tuple[float, float | None, float | None, int, int]


def series(replicator: Replicator, chosen: Range, now: datetime) -> Series:
    """A replicator's metrics over a range."""
    found = ReplicatorMetric.objects.filter(
        replicator=replicator,
        resolution_seconds=chosen.resolution_seconds,
        at__gte=now - timedelta(seconds=chosen.seconds),
    ).order_by("at")
    rows = found.values_list(
        "at", "lag_worst_seconds", "lag_median_seconds", "changes", "rows_snapshotted"
    )
    samples = [(at.timestamp(), worst, mid, n, rows_) for at, worst, mid, n, rows_ in rows]
    lags = sorted(s[1] for s in samples if s[1] is not None)
    cuts = quantiles(lags, n=100, method="inclusive") if len(lags) > 1 else lags * 99
    return Series(
        chosen,
        tuple(_points(samples, chosen)),
        cuts[49] if cuts else None,
        cuts[98] if cuts else None,
    )


def _points(samples: Sequence[_Sample], chosen: Range) -> Iterable[Point]:
    """One point for each bucket, with its worst lags and its mean rates. A gap begins with a point
    without values."""
    buckets: dict[int, list[tuple[_Sample, _Sample | None]]] = defaultdict(list)
    width = chosen.bucket_seconds
    for before, sample in pairwise([None, *samples]):
        assert sample is not None
        buckets[int(sample[0] // width)].append((sample, before))
    last: int | None = None
    for number in sorted(buckets):
        if last is not None and number - last > 2:
            yield Point((last + 1) * width, None, None, None, None)
        last = number
        yield _point(number * width, buckets[number], chosen.resolution_seconds)


def _point(at: float, pairs: Sequence[tuple[_Sample, _Sample | None]], resolution: int) -> Point:
    steps = [(b, s) for s, b in pairs if b is not None and s[0] - b[0] <= 3 * resolution]
    return Point(
        at,
        _worst(s[1] for s, _ in pairs),
        _worst(s[2] for s, _ in pairs),
        _rate(steps, 3),
        _rate(steps, 4),
    )


def _worst(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return round(max(known), 3) if known else None


def _rate(steps: Sequence[tuple[_Sample, _Sample]], column: int) -> float | None:
    """Growth a second over these steps. A counter that fell was reset by a re-sync; such a step
    does not count."""
    if not steps:
        return None
    passed = sum(s[0] - b[0] for b, s in steps)
    grown = sum(max(0, int(s[column] or 0) - int(b[column] or 0)) for b, s in steps)
    return round(grown / passed, 2)


@dataclass(frozen=True, slots=True)
class Recent:
    """The last hour in brief: lag once a minute for a sparkline, and rows a second over the last
    minute."""

    spark: tuple[float | None, ...] = ()
    rate: float | None = None


def recent(pks: Collection[Any], now: datetime) -> dict[Any, Recent]:
    """`Recent` of each of these replicators, in two queries."""
    lags: dict[Any, dict[int, float | None]] = defaultdict(dict)
    hour = ReplicatorMetric.objects.filter(
        replicator__in=pks,
        resolution_seconds=60,
        at__gte=now - timedelta(seconds=60 * SPARK_POINTS),
    )
    for pk, at, lag in hour.values_list("replicator_id", "at", "lag_worst_seconds"):
        lags[pk][int(at.timestamp() // 60)] = lag
    rates = _rates(pks, now)
    newest = int(now.timestamp() // 60)
    minutes = range(newest - SPARK_POINTS + 1, newest + 1)
    return {pk: Recent(tuple(lags[pk].get(m) for m in minutes), rates.get(pk)) for pk in pks}


def _rates(pks: Collection[Any], now: datetime) -> dict[Any, float]:
    found = ReplicatorMetric.objects.filter(
        replicator__in=pks,
        resolution_seconds=10,
        at__gte=now - timedelta(seconds=RATE_SECONDS + FRESH_SECONDS),
    ).order_by("at")
    kept: dict[Any, list[tuple[datetime, int]]] = defaultdict(list)
    for pk, at, changes, rows in found.values_list(
        "replicator_id", "at", "changes", "rows_snapshotted"
    ):
        kept[pk].append((at, changes + rows))
    return {
        pk: sum(max(0, b[1] - a[1]) for a, b in pairwise(samples))
        / (samples[-1][0] - samples[0][0]).total_seconds()
        for pk, samples in kept.items()
        if len(samples) > 1 and (now - samples[-1][0]).total_seconds() <= FRESH_SECONDS
    }


def copy_rate(replicator: Replicator, now: datetime) -> float | None:
    """Rows a second of all copies of a replicator together, over the last two minutes. None where
    nothing was measured."""
    found = ReplicatorMetric.objects.filter(
        replicator=replicator,
        resolution_seconds=10,
        at__gte=now - timedelta(seconds=2 * RATE_SECONDS),
    )
    samples = list(found.order_by("at").values_list("at", "rows_snapshotted"))
    if len(samples) < 2 or (now - samples[-1][0]).total_seconds() > FRESH_SECONDS:
        return None
    grown = sum(max(0, b[1] - a[1]) for a, b in pairwise(samples))
    return round(grown / (samples[-1][0] - samples[0][0]).total_seconds(), 2)


def snapshot_rates(tables: Collection[Table], now: datetime) -> dict[Any, float]:
    """Rows a second of tables that are being copied, by primary key, over the last two minutes."""
    since = now - timedelta(seconds=2 * RATE_SECONDS)
    first: dict[Any, tuple[datetime, int]] = {}
    found = TableMetric.objects.filter(table__in=tables, resolution_seconds=10, at__gte=since)
    for pk, at, rows in found.order_by("at").values_list("table_id", "at", "rows_snapshotted"):
        if pk not in first or rows < first[pk][1]:
            first[pk] = (at, rows)
    return {
        t.pk: (t.rows_snapshotted - first[t.pk][1]) / passed
        for t in tables
        if t.pk in first
        and (passed := (now - first[t.pk][0]).total_seconds()) >= 5
        and t.rows_snapshotted > first[t.pk][1]
    }


def line_path(
    values: Sequence[float | None], width: float, height: float, top: float | None = None
) -> str:
    """An SVG path through these evenly spread values, with a break at each unknown one. `top` (by
    default the greatest value) touches the upper edge."""
    highest = top or max((v for v in values if v is not None), default=0.0) or 1.0
    step = width / max(1, len(values) - 1)
    path, is_drawing = [], False
    for index, value in enumerate(values):
        if value is not None:
            y = height - value / highest * height
            path.append(f"{'L' if is_drawing else 'M'}{index * step:.1f} {y:.1f}")
        is_drawing = value is not None
    return "".join(path)
