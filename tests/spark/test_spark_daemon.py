"""Spark's Python workers begin with what the tasks of a run import, in a session of a process of
its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOK = """
import json, sys
from zipimport import zipimporter
from runners.engine.tasks.opening import workers_conf
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.spark import open_session
from replicators.connectors import registry
from replicators.targets.lakehouse import PLUGIN

def look(batches):
    import pyarrow as pa
    loaded = sorted(n for n in sys.modules if n.startswith(("runners.engine.fold.", "replicators.sources.")))
    archives = [a for a in sys.path_importer_cache.values() if isinstance(a, zipimporter)]
    read = [a._files for a in archives]
    __import__("importlib").invalidate_caches()
    again = sum(a._files is not r for a, r in zip(archives, read, strict=True))
    from replicators.connectors.problems.errors import ReplicationError
    told = [str(ReplicationError("source:wal-level", value="x")), "psycopg" in sys.modules]
    found = json.dumps([loaded, len(archives), again, told])
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"found": [found]})

conf = workers_conf(registry.sources()[sys.argv[1]], PLUGIN)
session = open_session(RunnerSettings(), "daemon", (), {**conf, "spark.master": "local[1]"})
print(session.range(0, 1, 1, 1).mapInArrow(look, "found string").collect()[0][0])
session.stop()
"""  # noqa: E501


@pytest.mark.spark
@pytest.mark.parametrize(("source", "other"), [("mysql", "postgresql")])
@pytest.mark.long
def test_a_worker_has_everything_before_its_first_task(source: str, other: str) -> None:
    """Guards `load_all`: without it each worker that Spark starts, also after a minute without
    work, imports for two seconds first. And `keep_archives`: without it each task reads the names
    in PySpark's archive again, once for each package in it."""
    command = [sys.executable, "-c", LOOK, source]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found, archives, read_again, reported = json.loads(done.stdout.splitlines()[-1])
    assert {"runners.engine.fold.plan", f"replicators.sources.{source}.decode"} <= set(found)
    assert not any(n.startswith(f"replicators.sources.{other}.") for n in found)
    assert archives, "PySpark's archives are not on the path any more: keep_archives may go"
    assert read_again == 0
    text = "source:wal-level: The server's `wal_level` is `x`; following changes needs `logical`."
    assert reported == [text, False], (
        "a task knows the words of every plugin, and loads no driver for it"
    )
