"""Runs that share a Spark: one JVM and one set of Python workers serves them, and no end of one
harms another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.engine.tasks.sharing import ways
from tests.demo_kills import Copies, become_equal, is_copied
from tests.demos import closed_demo, pids
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
TASK_HOG = """
import sys
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.opening import on_shared
from runners.engine.tasks.on_spark import SparkTasks
def work(item):
    hoard = [bytearray(50 << 20) for _ in range(60)]
    return len(hoard)
with on_shared(RunnerSettings(spark_shared_dir=sys.argv[1]), "hog", {}) as spark:
    SparkTasks(spark).map(work, [1])
"""
LARGE = "big"


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


def test_a_task_that_takes_all_memory_fails_alone(shared: SharedServer, tmp_path: Path) -> None:
    """Guards `limit_memory` in the shared Spark's workers: one replicator's task took the
    machine's memory, and the system ended whatever it found. And the daemon's modules: each new
    worker imported for seconds."""
    shared.start({**FAST, "REPLICATOR_SPARK_SHARED_WORKER_BYTES": str(700 << 20)})
    shared.until_ready()
    jvm = shared.jvm().pid
    client = hog(shared.base, TASK_HOG)
    other = busy(shared, "other", tmp_path / "mark", 3)
    said = client.communicate(timeout=120)[1]
    assert "run:task-memory" in said, said
    assert "700 MiB" in said, said
    assert other.communicate(timeout=60)[0] == "done [1, 2]\n"
    later = busy(shared, "later", tmp_path / "later", 0.1)
    assert later.communicate(timeout=60)[0] == "done [1, 2]\n"
    assert shared.jvm().pid == jvm
    (daemon,) = shared.jvm().children()
    assert any("llvmlite" in m.path for m in daemon.memory_maps()), "each worker imports anew"


def make_large(database: Any) -> None:
    """A table whose copy takes long: many chunks."""
    database.execute(
        f"CREATE SCHEMA shop; CREATE TABLE shop.{LARGE} (id bigint PRIMARY KEY, note text);"
        f"INSERT INTO shop.{LARGE} SELECT n, repeat('x', 200) FROM generate_series(1, 200000) n"
    )


def test_a_change_arrives_while_another_replicators_table_is_copied(
    world_maker: MakeWorld, shared: SharedServer
) -> None:
    """Guards the default pool in `pools.xml`: a change of one replicator waited for the end of
    another's copy."""
    with (
        world_maker(environment=shared.environment) as small,
        world_maker(
            environment=shared.environment,
            application=small.application,
            prepare=make_large,
            tables=(LARGE,),
        ) as large,
    ):
        shared.start(small._environment({}))
        small.start()
        small.assert_equal()
        large.start()
        large.until(lambda: large.row(LARGE).rows_snapshotted > 0, "the copy of the large table")
        Traffic(small.database).write(20)
        small.settle()
        assert large.states()[LARGE] == "snapshotting", "the change waited for the copy"
        small.assert_equal()
        large.assert_equal()


def test_the_worker_for_runs_brings_the_shared_spark_back(tmp_path: Path) -> None:
    """Guards `SharedSpark.keep` in `Supervisor.turn`: after a heap that was full, nobody started
    the shared Spark again. Web, workers, beat and broker are those of the product."""
    base = tmp_path / "shared"
    environment = {
        "REPLICATOR_SPARK": "shared",
        "REPLICATOR_SPARK_SHARED_DIR": str(base),
        "REPLICATOR_SPARK_SHARED_MEMORY": "700m",
    }
    with closed_demo(tmp_path / "run", **environment) as demo:
        reported = demo.start()
        seen: list[str] = []
        until(lambda: is_copied(reported, seen), lambda: f"every table has its copy: {seen}")
        folder, copies = ways.place_of(str(base)), Copies(reported)
        first = ways.noted_keeper(folder)
        assert first is not None
        assert not pids(demo, "run"), "the run has a Spark of its own"
        assert "run:spark-lost" in hog(base, HEAP_HOG).communicate(timeout=240)[1]
        until(lambda: ways.has_keeper(folder), "the shared Spark is started again")
        assert ways.noted_keeper(folder) != first
        before = copies.newest()
        until(lambda: copies.newest() > before, "changes after the new start")
        become_equal(demo, copies)
