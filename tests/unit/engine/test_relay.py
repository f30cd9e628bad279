"""Errors of tasks arrive at the driver with code, table and facts."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from runners.engine.tasks.errors import from_tasks, relayed
from tests.harness import ROOT

TABLE = TableId("shop", 'or"ders')


def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise ReplicationError("source:select-right", table=TABLE, user="ü", schema="s", name="n")


def test_an_error_of_a_task_is_the_same_at_the_driver() -> None:
    """Guards `relay._marked` and `from_tasks`: Spark carries only a text, and without the mark
    every fault of a task would be an unexpected one of the run."""
    with pytest.raises(RuntimeError) as task:
        list(relayed(failing)(iter([])))
    with pytest.raises(ReplicationError) as found, from_tasks():
        raise ValueError(f"Py4J says: Traceback ... RuntimeError: {task.value}\n  at java.lang")
    assert found.value.code == "source:select-right"
    assert found.value.table == TABLE
    assert found.value.facts["user"] == "ü"


def test_other_errors_pass() -> None:
    """Guards `from_tasks` where nothing is marked: errors of the driver itself must not be
    swallowed or renamed."""
    with pytest.raises(ValueError, match="plain"), from_tasks():
        raise ValueError("plain")
    with pytest.raises(ReplicationError), from_tasks():
        raise ReplicationError("run:spark")


def test_modules_of_a_worker_are_set_aside_once() -> None:
    """Garbage that a task leaves must still be found: only a worker that imported something new
    sets objects aside."""
    try:
        list(relayed(lambda batches: batches)(iter([])))
        frozen = gc.get_freeze_count()
        assert frozen > 10_000
        list(relayed(lambda batches: batches)(iter([])))
        assert gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


LIMITED = """
import os, sys
import pyarrow as pa
from runners.engine.tasks.errors import LIMIT, relayed
from runners.engine.tasks.worker import limit_memory

os.environ[LIMIT] = str(400 << 20)
limit_memory(400 << 20)
hoard = []

def python(batches):
    hoard.append(bytearray(600 << 20))
    yield from batches

def arrow(batches):
    yield pa.allocate_buffer(600 << 20)

for job in (python, arrow):
    try:
        list(relayed(job)(iter([])))
    except RuntimeError as err:
        print(err, flush=True)
"""


def test_a_worker_over_its_memory_says_what_to_do() -> None:
    """Guards `limit_memory` and `relayed`: a worker took the machine's memory, and whoever the
    system killed then had no message."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=ROOT, check=True, capture_output=True, text=True
    )
    said = done.stdout.splitlines()
    assert len(said) == 2, done
    for line in said:
        with pytest.raises(ReplicationError) as found, from_tasks():
            raise ValueError(line)
        assert found.value.code == "run:task-memory"
        assert "400 MiB" in found.value.message.text
        assert "REPLICATOR_SPARK_SHARED_WORKER_BYTES" in found.value.message.suggestion
