"""A killed run leaves nothing in Spark's scratch folders for ever."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from replicators.connectors.errors import ReplicationError
from runners.engine.opening import _with_scratch
from runners.engine.scratch import FOLDER, scratch_dir
from runners.engine.settings import RunnerSettings

MAKE = "import sys; from runners.engine.scratch import scratch_dir; print(scratch_dir(sys.argv[1]))"


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    """Guards `scratch_dir`: Spark removes its shuffle files when it ends, which a killed one never does."""
    made = subprocess.run(
        [sys.executable, "-c", MAKE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    dead = Path(made.stdout.strip())
    (dead / "blockmgr-1").mkdir()
    elsewhere = tmp_path / FOLDER / "another-machine@1@1.0"
    strange = tmp_path / FOLDER / "somebody's"
    elsewhere.mkdir()
    strange.mkdir()
    own = Path(scratch_dir(str(tmp_path)))
    assert not dead.exists()
    assert scratch_dir(str(tmp_path)) == str(own), "its own is in use"
    assert sorted((tmp_path / FOLDER).iterdir()) == sorted([elsewhere, strange, own])


def test_only_a_spark_of_this_machine_gets_one(tmp_path: Path) -> None:
    """Guards `open_for`: executors elsewhere have folders of their own."""
    local = RunnerSettings(spark_local_dir=str(tmp_path))
    assert _with_scratch(local).spark_local_dir.startswith(f"{tmp_path}/{FOLDER}/")
    for other in (
        replace(local, spark_master="spark://host:7077"),
        replace(local, spark_remote="sc://host"),
    ):
        assert _with_scratch(other) is other
    (tmp_path / "file").touch()
    with pytest.raises(ReplicationError, match="run:spark"):
        _with_scratch(replace(local, spark_local_dir=str(tmp_path / "file")))
