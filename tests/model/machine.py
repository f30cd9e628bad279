"""The adversary: a seeded random walk over what may happen to a replicator, at its source and to
its run. It writes to the source through SQL and to the product only through a `World`; the checks
know nothing of the engine."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runners.models import Event
from tests.harness import World
from tests.model.actions import FAULTS, Actions
from tests.model.checks import Checks
from tests.model.further import FurtherWrites
from tests.model.metrics import LagSampler, Metrics
from tests.model.past import Base
from tests.model.sources import Source
from tests.model.tables import MODES
from tests.model.writes import Writes

Weights = dict[Callable[[], None], int]
LAST_STEPS = 60


@dataclass
class Machine:
    """Walks random steps over `tables`; what it did is in `reported`. The same seed takes the same
    steps; where the run is then, time decides."""

    world: World
    seed: int
    source: Source
    tables: Sequence[str]
    reported: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    weights: Weights = field(default_factory=dict)
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def __post_init__(self) -> None:
        self.random = rng = random.Random(self.seed)
        self.writes = Writes(self.source, rng)
        self.further = FurtherWrites(self.source, rng)
        self.alterations = self.source.alterations(self.source, rng)
        names = tuple(self.tables)
        self.actions = Actions(self.world, self.source, self.writes, rng, self.counts, names)
        self.actions.bases |= {t: Base() for t in MODES if t in names}
        self.checks = Checks(self.world, self.source, self.actions, self.counts)
        self.weights = self._common() | self._further()

    # --- steps of more than one part -----------------------------------------------------------------------------  # noqa: E501
    def check(self) -> None:
        """Everything is equal now."""
        self.further.mend()
        self.checks.settle()
        self.checks.verify()

    def call_else(self) -> None:
        """A table has another name for a moment, or until it was seen; it is followed there."""
        self.alterations.call_else()
        if self.random.choice((True, False)):
            self.actions.keeper.until(self._is_seen_else, "altered is followed")
        self.alterations.call_again()

    def _is_seen_else(self) -> bool:
        row = self.world.row("altered")
        called = (row.schema or {}).get("called", [""])
        return called[-1] == "altered_else" or row.state == "failing"

    def alter(self) -> None:
        """The schema of a table changes, in one of the ways."""
        ways = self.alterations.ways() | {self.call_else: 2}
        (way,) = self.random.choices(list(ways), list(ways.values()))
        self.actions.pending.add("altered")
        self.reported[-1] += f" {way.__name__}"
        self.counts[f"schema: {way.__name__}"] += 1
        way()

    def _common(self) -> Weights:
        w, a = self.writes, self.actions
        return {
            w.transfer: 100, w.swap: 40, w.chain: 40, w.toast: 60, w.rename: 30, w.come_and_go: 50,
            w.rollback: 25, w.burst: 12, w.clear: 3, w.truncate: 10, w.add_column: 10,
            w.drop_column: 8,
            a.pause: 4, a.kill: 8, a.die_later: 15, a.restart_source: 5, a.cut: 8,
            a.target_outage: 6,
            a.resync: 12, a.leave_and_come: 7, a.rewind: 14, a.breathe: 15, self.check: 14,
        }  # fmt: skip

    def _further(self) -> Weights:
        f, a = self.further, self.actions
        return {
            f.keep: 120, f.keep_nothing: 10, f.empty: 5, f.add_column_kept: 6, f.visit: 50,
            f.pick: 50, f.unsupported_value: 30,
            self.alterations.write: 50, self.alter: 45, a.filter_else: 3, a.new_table: 5,
            a.drop_table: 4, a.write_extra: 15,
        }  # fmt: skip

    # --- the walk ------------------------------------------------------------------------------------------------  # noqa: E501
    def walk(self, steps: int, seconds: float = 0.0) -> Metrics:
        """So many steps, or as many as fit into `seconds` (0: no limit), then a last check and a
        pause. Whatever ends it, its metrics are kept."""
        metrics = Metrics(self.source.kind, self.world.format, self.seed, steps)
        begun = time.monotonic()
        with LagSampler(self.world.replicator) as sampler:
            try:
                for number in range(steps):
                    if seconds and time.monotonic() - begun > seconds:
                        break
                    self._step(number)
                    metrics.steps += 1
                self.actions.keeper.disarm()
                self.check()
                self.actions.keeper.stop()
            except BaseException as err:
                metrics.failure = f"{type(err).__name__}: {str(err)[:1500]}"
                raise AssertionError(self._report(err)) from err
            finally:
                metrics.seconds = round(time.monotonic() - begun, 1)
                self._fill(metrics, sampler.samples)
                metrics.keep()
        return metrics

    def _step(self, number: int) -> None:
        (act,) = self.random.choices(list(self.weights), list(self.weights.values()))
        self.reported.append(f"{number} {act.__name__}")
        self.counts[act.__name__] += 1
        begun = time.monotonic()
        act()
        self.actions.keeper.tend()
        self.spent[act.__name__] += time.monotonic() - begun

    def _fill(self, metrics: Metrics, samples: Sequence[float]) -> None:
        counts = self.counts
        metrics.deaths = counts["kill"] + sum(n for k, n in counts.items() if k.startswith("died"))
        others = sum(n for k, n in counts.items() if k in FAULTS - {"kill", "die_later"})
        metrics.faults = metrics.deaths + others
        metrics.checks = counts["check"] + 1
        metrics.watermarks = counts["watermarks"]
        metrics.captured = self.checks.captured
        share = self.checks.doubled / max(1, self.checks.captured)
        metrics.duplicates_percent = round(100.0 * share, 4)
        metrics.largest_settle_seconds = round(self.checks.largest_settle, 1)
        metrics.lags(samples)
        events = Event.objects.filter(replicator=self.world.replicator)
        metrics.rewound = events.filter(kind="table_rewound").count()
        metrics.rewinds_refused = events.filter(kind="table_rewind_refused").count()
        metrics.seconds_by_step = {k: round(v, 1) for k, v in self.spent.items() if v >= 1}
        metrics.counts = dict(sorted(counts.items()))

    def _report(self, err: BaseException) -> str:
        steps = "\n".join(self.reported[-LAST_STEPS:])
        states: dict[str, Any] = self.world.states()
        log = "\n".join(self.world.log_text().splitlines()[-40:])
        return f"seed {self.seed}: {err}\nstates: {states}\nlog:\n{log}\nlast steps:\n{steps}"
