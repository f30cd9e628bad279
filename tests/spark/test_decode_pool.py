"""Decoding goes before what merges and copies have submitted already, in a session of a process of
its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from runners.engine.changelog.segments import ChangeLog
from runners.engine.decode.job import DecodeTask, decode_segments
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.on_spark import SparkTasks
from runners.engine.tasks.spark import open_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
JOBS, TASKS, TASK_SECONDS = 4, 40, 0.15
SEGMENTS = 8


def nothing(head: dict[str, Any], body: Any, segment: int) -> Iterator[Any]:
    """A decoder of segments without changes."""
    return iter(())


def _slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(TASK_SECONDS)
        yield batch


def _segments(folder: Path) -> list[DecodeTask]:
    log = ChangeLog(str(folder), "pool", "test", "")
    tasks = []
    for number in range(1, SEGMENTS + 1):
        sealed = log.begin_segment(number, {"segment": number}).seal()
        tasks.append(DecodeTask(number, sealed.path, sealed.crc32, log.change_prefix(number)))
    return tasks


def main(folder: Path) -> None:
    """Many long tasks, a decode job behind them, and how many of them were done when it had
    ended."""
    spark = open_session(RunnerSettings(log_url=str(folder)), "pool", (), {})
    tasks = _segments(folder)
    decode_segments(
        SparkTasks(spark), tasks, f"{__spec__.name}:nothing"
    )  # workers are there, modules loaded
    status = spark.sparkContext.statusTracker()

    def merge() -> None:
        spark.range(0, TASKS, 1, TASKS).mapInArrow(_slow, "id long").collect()

    def done() -> int:
        active = [status.getJobInfo(j) for j in status.getActiveJobsIds()]
        stages = [status.getStageInfo(s) for job in active if job for s in job.stageIds]
        left = sum(s.numTasks - s.numCompletedTasks for s in stages if s)
        return JOBS * TASKS - left

    threads = [threading.Thread(target=merge, daemon=True) for _ in range(JOBS)]
    for thread in threads:
        thread.start()
    while len(status.getActiveJobsIds()) < JOBS:
        time.sleep(0.05)
    before = done()
    decode_segments(SparkTasks(spark), tasks, f"{__spec__.name}:nothing")
    sys.stdout.write(json.dumps({"before": before, "after": done()}) + "\n")
    sys.stdout.flush()
    os._exit(0)


def test_a_decode_job_behind_many_long_tasks_ends_before_them(tmp_path: Path) -> None:
    """Guards the pool of its own: in the common one, where the first job comes first, every one of
    those tasks would end before (seen so with `in_pool` switched off)."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.test_decode_pool", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    reported = json.loads(done.stdout.splitlines()[-1])
    assert reported["after"] - reported["before"] < JOBS * TASKS // 3, reported


if __name__ == "__main__":
    main(Path(sys.argv[1]))
