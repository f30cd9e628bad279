"""Line `decode`: the steady rate of decoding raw segments to change files in Spark."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from benchmarks import place
from benchmarks.capture import SERVER, Taken, is_right
from benchmarks.report import Result
from benchmarks.resources import turn
from benchmarks.workload import Workload
from demo.postgres import EmbeddedPostgres
from runners.engine.decode.job import DecodeTask, decode_segments, task_for
from runners.engine.tasks.on_spark import SparkTasks

JOBS = 7
WARM = 2


def measure(line: str) -> list[Result]:
    """Capture once, stop the server, then decode the same segments repeatedly."""
    with place.folder(line) as folder:
        with EmbeddedPostgres(fsync=False, options=SERVER) as server:
            load = Workload(server, 1).make()
            taken = Taken(load.stream("ours_0"), folder).run()
        out = folder / "out"
        out.mkdir()
        rates = []
        target = place.target_params(folder)
        with place.spark(folder, target) as spark, turn():
            for job in range(JOBS):
                tasks = _tasks(taken, out, job)
                began = time.monotonic()
                done = decode_segments(SparkTasks(spark), tasks, place.SOURCE.log.decoder)
                seconds = time.monotonic() - began
                rows = sum(f.counts.rows for f in done.files)
                rates.append(rows / seconds)
                place.logger.info("job %d: %.2f s, %.0f rows/s", job, seconds, rates[-1])
                paths = [f.path for f in done.files]
                if job < JOBS - 1:
                    for path in paths:
                        Path(path).unlink()
        again = [p for p in paths if "-again" in p]
        checked = is_right(again, load) and is_right([p for p in paths if p not in again], load)
    size = sum(s.size_bytes for s in taken.segments) / load.changes
    return [
        Result(
            line,
            "row changes/s",
            round(place.median(rates[WARM:])),
            1_000_000,
            is_absolute=True,
            checked=checked,
            note=f"{len(tasks)} segments a job, {size:.0f} bytes a change (half of them carry a "
            "before image of all "
            f"columns); {JOBS - WARM} jobs between {min(rates[WARM:]):,.0f} and "
            f"{max(rates[WARM:]):,.0f}. "
            "The cores are full: reading and checking the segment, columns, Parquet with zstd, "
            "fsync.",
        )
    ]


def _tasks(taken: Taken, out: Path, job: int) -> list[DecodeTask]:
    """A task for each segment, twice, so that both cores have several."""
    once = [task_for(s, str(out / f"{job}-{s.number}")) for s in taken.segments]
    return once + [replace(t, prefix=f"{t.prefix}-again") for t in once]
