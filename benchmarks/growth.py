"""Line `growth`: many merges into one table, with the engine's maintenance. The last merges must be
as fast as the first."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import place
from benchmarks.merge import TABLE, batch, fill
from benchmarks.report import Peer, Result
from benchmarks.resources import turn
from replicators.connectors.target import TargetTable
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.on_spark import SparkTasks

MERGES = int(os.environ.get("BENCH_MERGES", "0")) or place.scaled(1000, 100)
FIRST = min(50, MERGES // 2)
WARM = min(60, MERGES)
ROWS = 200_000
KEYS = 150
FILES = 4
HISTORY_MINUTES = 1


def files(folder: Path) -> dict[str, int]:
    """Number of data files and of metadata files in a warehouse."""
    names = [p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".crc")]
    meta = sum(1 for p in names if p.parent.name == "metadata")
    return {"data": len(names) - meta, "metadata": meta}


class Merges:
    """Merges of random keys. They are applied in memory too, so that the final tables can be
    compared."""

    def __init__(self, folder: Path, writer: Any, table: TargetTable) -> None:
        self._folder = folder
        self._writer = writer
        self._table = table
        self._random = random.Random(2)
        self._sequence = 1
        self.there = {i: i % 5000 for i in range(0, 2 * ROWS, 2)}

    def once(self) -> float:
        """Do one merge; returns its seconds."""
        self._sequence += 1
        ids = sorted(self._random.sample(range(2 * ROWS), KEYS))
        made = batch(self._folder, self._sequence, ids, self._sequence)
        began = time.monotonic()
        self._writer.merge(self._table, made)
        took = time.monotonic() - began
        for path in made.paths:
            Path(path).unlink()
        for i in ids:
            if i % 10 == 0:
                self.there.pop(i, None)
            else:
                self.there[i] = self._sequence
        return took

    def is_right(self, found: pa.Table) -> bool:
        """Whether a table holds each key once, with the value from the last merge."""
        held = dict(zip(*(found.column(c).to_pylist() for c in ("id", "customer")), strict=True))
        return held == self.there and found.num_rows == len(held)

    def maintain(self) -> float:
        """Do the engine's maintenance; returns its seconds."""
        began = time.monotonic()
        self._writer.maintain(self._table)
        return time.monotonic() - began


def measure(line: str) -> list[Result]:
    """Merges one after the other, with maintenance as often as the engine does it."""
    every = RunnerSettings().maintain_every_commits
    with place.folder(line) as folder:
        target = place.target_params(folder, history_minutes=HISTORY_MINUTES)
        warm = place.target_params(folder, namespace="warm")
        with place.spark(folder, target) as spark:
            other = place.TARGET.writer(warm, SparkTasks(spark))
            _repeat(Merges(folder, other, fill(spark, other, ROWS, FILES)), WARM, WARM // 2)
            writer = place.TARGET.writer(target, SparkTasks(spark))
            merges = Merges(folder, writer, fill(spark, writer, ROWS, FILES))
            with turn():
                where = folder / "warehouse" / "bench"
                seconds, upkeep, counts = _repeat(merges, MERGES, every, where)
            found = (
                place.iceberg_table(target, "bench", TABLE.name)
                .scan(selected_fields=("id", "customer"))
                .to_arrow()
            )
            checked = merges.is_right(found)
    first, last = (statistics.mean(s) for s in (seconds[:FIRST], seconds[-FIRST:]))
    middle, end = counts[len(counts) // 2], counts[-1]
    bounded = all(end[k] <= 2 * middle[k] for k in end)
    return [
        Result(
            line,
            "s a merge",
            round(last, 3),
            1.5,
            (Peer("the first fifty", round(first, 3)),),
            round(last / first, 2),
            at_most=True,
            checked=checked and bounded,
            note=f"{len(seconds)} merges of {KEYS} random keys into {ROWS:,} rows, upkeep each "
            f"{every} (mean "
            f"{statistics.mean(upkeep):.1f} s, not in the merges' time), {HISTORY_MINUTES} "
            "minute of history. Files after "
            f"half of them {middle}, at the end {end}. The ratio is the last {FIRST} merges' "
            f"time over the first {FIRST}'s.",
        )
    ]


def _repeat(
    merges: Merges, count: int, every: int, folder: Path | None = None
) -> tuple[list[float], list[float], list[dict[str, int]]]:
    seconds, upkeep, counts = [], [], []
    for number in range(1, count + 1):
        seconds.append(merges.once())
        if number % every == 0:
            upkeep.append(merges.maintain())
            if folder is not None:
                counts.append(files(folder))
                recent = statistics.mean(seconds[-every:])
                place.logger.info(
                    "%d: %.3f s a merge, upkeep %.1f s, %s", number, recent, upkeep[-1], counts[-1]
                )
    return seconds, upkeep, counts
