"""Runs that share a Spark: one JVM and one set of Python workers serves them, and no end of one
harms another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import FAST, ROOT, Traffic, until
from tests.shared_spark import SharedServer
from tests.world_fixtures import MakeWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.long]

BUSY = """
import sys, time
from pathlib import Path
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.opening import on_shared
from runners.engine.tasks.on_spark import SparkTasks
base, owner, mark, seconds = sys.argv[1:]
def work(item):
    Path(mark).write_text("busy")
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        Path(mark).touch()
        time.sleep(0.05)
    return item
with on_shared(RunnerSettings(spark_shared_dir=base), owner, {}) as spark:
    found = SparkTasks(spark).map(work, [1, 2])
    print("done", found, flush=True)
"""

HEAP_HOG = """
import sys
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.opening import on_shared
with on_shared(RunnerSettings(spark_shared_dir=sys.argv[1]), "hog", {}) as spark:
    spark.sql("SELECT size(collect_list(id)) FROM range(1000000000)").collect()
"""


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    server = SharedServer(tmp_path_factory.mktemp("shared"))
    try:
        yield server
    finally:
        server.close()


def busy(shared: SharedServer, owner: str, mark: Path, seconds: float) -> subprocess.Popen[str]:
    """A client whose two tasks take all cores."""
    return subprocess.Popen(
        [sys.executable, "-c", BUSY, str(shared.base), owner, str(mark), str(seconds)],
        cwd=ROOT, env={**os.environ, **FAST}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def hog(base: Path, program: str) -> subprocess.Popen[str]:
    """A client that takes all the memory it gets."""
    return subprocess.Popen(
        [sys.executable, "-c", program, str(base)],
        cwd=ROOT, env={**os.environ, **FAST}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_a_run_goes_on_after_its_own_end_and_after_the_servers(
    world_maker: MakeWorld, shared: SharedServer, tmp_path: Path, form: str
) -> None:
    """Guards `on_shared`, `Service.release` and `Keeper`: rows that a killed client's late
    commit doubles, a client that waits for a dead server, and a Python daemon for each session."""
    with world_maker(format=form, environment=shared.environment) as world:
        shared.start(world._environment({}))
        traffic = Traffic(world.database)
        world.start()
        world.until(lambda: "snapshotting" in world.states().values(), "the first copy begins")
        traffic.write(20)
        world.kill()
        world.start()
        traffic.write(20)
        world.assert_equal()

        other = busy(shared, "other", tmp_path / "mark", 0.1)
        assert other.communicate(timeout=120)[0] == "done [1, 2]\n"
        assert len(shared.jvm().children()) == 1, "each session has a daemon for its workers"

        child = world.child
        assert child is not None
        assert shared.kill_jvm() == 1
        assert child.wait(30) == 3
        child.end()
        assert child.run.error_code == "run:spark-lost"
        shared.start(world._environment({}))
        world.start()
        traffic.write(20)
        world.assert_equal()
        assert world.stop() == 0


def test_what_a_killed_client_does_is_interrupted(shared: SharedServer, tmp_path: Path) -> None:
    """Guards `Service.release`: two tasks of a killed client kept both cores, and its successor
    began while they still wrote."""
    shared.start(FAST)
    shared.until_ready()
    mark = tmp_path / "mark"
    first = busy(shared, "a", mark, 600)
    until(mark.exists, "the tasks begin", 120)
    first.kill()
    first.wait(10)
    second = busy(shared, "a", tmp_path / "second", 0.1)
    assert second.communicate(timeout=60)[0] == "done [1, 2]\n", shared.output()
    touched = mark.stat().st_mtime_ns
    third = busy(shared, "b", tmp_path / "third", 0.1)
    assert third.communicate(timeout=60)[0] == "done [1, 2]\n"
    assert mark.stat().st_mtime_ns == touched, "a task outlived its client"


def test_a_hog_of_the_heap_is_ended_with_the_shared_spark(shared: SharedServer) -> None:
    """Guards `ExitOnOutOfMemoryError` and `Keeper._probe`: a heap that is full holds up everybody
    until somebody looks."""
    shared.start({**FAST, "REPLICATOR_SPARK_SHARED_MEMORY": "600m"})
    shared.until_ready()
    client = hog(shared.base, HEAP_HOG)
    assert shared.process is not None
    assert shared.process.wait(240) == 1, shared.output()
    assert "run:spark-lost" in client.communicate(timeout=30)[1]
