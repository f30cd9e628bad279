"""A killed run leaves nothing in Spark's scratch folders for ever."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from replicators.connectors import registry
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.params import LakehouseParams
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.opening import properties_for, with_scratch
from runners.engine.tasks.scratch import FOLDER, scratch_dir

MAKE = (
    "import sys; from runners.engine.tasks.scratch import scratch_dir; "
    "print(scratch_dir(sys.argv[1]))"
)


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    """Guards `scratch_dir`: Spark removes its shuffle files when it ends, which a killed one never
    does."""
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
    """Guards `opened_for`: executors elsewhere have folders of their own."""
    local = RunnerSettings(spark_local_dir=str(tmp_path))
    assert with_scratch(local).spark_local_dir.startswith(f"{tmp_path}/{FOLDER}/")
    for other in (
        replace(local, spark_master="spark://host:7077"),
        replace(local, spark_remote="sc://host"),
    ):
        assert with_scratch(other) is other
    (tmp_path / "file").touch()
    with pytest.raises(ReplicationError, match="run:spark"):
        with_scratch(replace(local, spark_local_dir=str(tmp_path / "file")))


def test_the_keys_of_a_bucket_lie_in_a_file_of_ours_alone_while_the_session_lasts(
    tmp_path: Path,
) -> None:
    """Guards the same of a bucket's keys."""
    params = LakehouseParams(
        warehouse="s3://b/lake", format="delta", s3_access_key="the-key", s3_secret_key="a:b"
    )
    job = Job("r", "r", "r", registry.sources()["postgresql"], None, PLUGIN, params)
    with properties_for(job, RunnerSettings(spark_local_dir=str(tmp_path))) as properties:
        path = Path(properties["aws.sharedCredentialsFile"])
        said = path.read_text().splitlines()
        assert said == [
            f"[{properties['aws.profile']}]",
            "aws_access_key_id = the-key",
            "aws_secret_access_key = a:b",
        ]
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        conf = PLUGIN.spark_conf(params)
        assert not any("a:b" in v or "the-key" in v for v in conf.values())
        assert conf["spark.hadoop.fs.s3a.aws.credentials.provider"].endswith(
            "ProfileCredentialsProvider"
        )
    assert not path.parent.exists()


def test_a_catalogs_password_lies_in_a_file_of_ours_alone_while_the_session_lasts(
    tmp_path: Path,
) -> None:
    """Guards `properties_for` and the lakehouse's `driver_properties`: in Spark's settings or the
    JVM's arguments everybody on the machine could read it."""
    params = LakehouseParams(
        warehouse="/lake",
        catalog_uri="postgresql://db/c",
        catalog_user="u",
        catalog_password="a:b\\c",
    )
    job = Job("r", "r", "r", registry.sources()["postgresql"], None, PLUGIN, params)
    settings = RunnerSettings(spark_local_dir=str(tmp_path))
    with properties_for(job, settings) as properties:
        (path,) = map(Path, properties.values())
        assert path.read_text() == "*:*:*:*:a\\:b\\\\c\n"
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert not any("a:b" in value for value in PLUGIN.spark_conf(params).values())
    assert not path.parent.exists()
    for other in (
        replace(settings, spark_remote="sc://host"),
        replace(settings, spark_master="spark://host:7077"),
    ):
        with properties_for(job, other) as properties:
            assert len(properties) == (not other.spark_remote)
    without = replace(job, target_params=replace(params, catalog_password=""))
    with properties_for(without, settings) as properties:
        assert properties == {}
