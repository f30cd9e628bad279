"""What a walk was, in numbers: the lag that the product shows, looked at each second, and a record
for reports."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from django.db import DatabaseError, connection
from django.utils import timezone

from replicators.models import Replicator
from runners.metrics.status import table_lag
from runners.metrics.totals import lag_facts
from runners.models import Progress, Run, Table
from runners.states import RunState

EVERY_SECONDS = 1.0
REPORT = "NEMESIS_REPORT"
"""A file that each walk's record is added to, as a line of JSON."""


@dataclass
class Metrics:
    """The record of one walk. `faults` are deaths, pauses, cuts, restarts and outages;
    `lag_samples` of a second each, of the worst table as the pages show it;
    `largest_settle_seconds`: the longest wait until everything was merged, with deaths and fresh
    copies in it."""

    source: str
    format: str
    seed: int
    asked: int
    steps: int = 0
    seconds: float = 0.0
    faults: int = 0
    deaths: int = 0
    checks: int = 0
    watermarks: int = 0
    captured: int = 0
    duplicates_percent: float = 0.0
    lag_samples: int = 0
    lag_median_seconds: float = 0.0
    lag_p99_seconds: float = 0.0
    lag_largest_seconds: float = 0.0
    largest_settle_seconds: float = 0.0
    rewound: int = 0
    rewinds_refused: int = 0
    failure: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    seconds_by_step: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        end = "ended clean" if not self.failure else "FAILED"
        return (
            f"{self.source} {self.format} seed {self.seed}: {self.steps} of {self.asked} steps "
            f"in {self.seconds:.0f} s, {end};"
            f" {self.faults} faults survived, {self.deaths} of them deaths of the run; "
            f"{self.checks} checks,"
            f" {self.watermarks} watermarks; duplicates {self.duplicates_percent:.3f} % of "
            f"{self.captured} captured changes;"
            f" lag median {self.lag_median_seconds:.1f} s, 99th percentile "
            f"{self.lag_p99_seconds:.1f} s, largest"
            f" {self.lag_largest_seconds:.1f} s of {self.lag_samples} samples; level after "
            f"{self.largest_settle_seconds:.0f} s"
            " at the latest"
        )

    def lags(self, samples: Sequence[float]) -> None:
        """Take over what was sampled."""
        ordered = sorted(samples)
        self.lag_samples = len(ordered)
        if ordered:
            self.lag_median_seconds = round(median(ordered), 3)
            self.lag_p99_seconds = round(ordered[int(len(ordered) * 0.99)], 3)
            self.lag_largest_seconds = round(ordered[-1], 3)

    def keep(self) -> None:
        """Add the record to the file that NEMESIS_REPORT names, if any."""
        if named := os.environ.get(REPORT):
            with Path(named).open("a") as file:
                file.write(json.dumps(asdict(self)) + "\n")


class LagSampler:
    """Looks each second, in a thread of its own, at the lag of every copied table: `samples` are
    the worst of each look."""

    def __init__(self, replicator: Replicator) -> None:
        self._replicator = replicator
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)
        self.samples: list[float] = []

    def __enter__(self) -> LagSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            # The application's database is busy at times; then there is no sample.
            with suppress(DatabaseError):
                self._look()
        connection.close()

    def _look(self) -> None:
        now = timezone.now()
        progress = Progress.objects.filter(replicator=self._replicator).first()
        runs = Run.objects.filter(replicator=self._replicator, state=RunState.RUNNING)
        is_live = runs.exists()
        rows = Table.objects.shown().filter(replicator=self._replicator)
        lags = [table_lag(lag_facts(r, progress, is_live=is_live), now) for r in rows]
        known = [lag for lag in lags if lag is not None]
        if known:
            self.samples.append(max(known))
