"""What a run says where the machine lacks Java or the lakehouse's jars, and where Spark's JVM is
killed; no session is started."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from replicators.connectors import registry
from replicators.connectors.problems.errors import ReplicationError
from replicators.targets.lakehouse import PLUGIN
from replicators.targets.lakehouse.params import LakehouseParams
from runners.engine.job import Job
from runners.engine.settings import RunnerSettings
from runners.engine.tasks import opening
from runners.engine.tasks.spark import open_session


def said(folder: Path) -> ReplicationError:
    settings = RunnerSettings(log_url=str(folder), jars_dir=str(folder))
    with pytest.raises(ReplicationError) as caught:
        open_session(settings, "test", ("some-jar",), {})
    return caught.value


def test_without_java_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `spark._require_java`: pyspark would only say that its gateway ended."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    error = said(tmp_path)
    assert error.code == "run:java-missing"
    assert "Java 17" in f"{error.message.text} {error.message.suggestion}"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert said(tmp_path).code == "run:java-missing"


def test_without_jars_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `spark._jar_paths`: the session would open, and fail at the first table with a class
    that is not found."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    error = said(tmp_path)
    assert error.code == "run:jars-missing"
    assert str(tmp_path) in error.message.text


class Spark:
    """A session as far as its JVM's process goes."""

    def __init__(self) -> None:
        self.jvm = subprocess.Popen(["sleep", "600"])
        self.stopped = False
        self._sc = SimpleNamespace(_gateway=SimpleNamespace(proc=self.jvm))

    def stop(self) -> None:
        assert self.jvm.poll() is None, "py4j would raise"
        self.stopped = True


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_killed_jvm_is_reported_as_that(
    monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """Guards `opened_for` and `jvm_ended`: whatever py4j raised was reported as unknown, or as a
    target that is not reachable."""
    spark = Spark()
    monkeypatch.setattr(opening, "open_session", lambda *_: spark)
    monkeypatch.setattr(opening, "_begin", lambda _: None)
    params = LakehouseParams(warehouse="/lake", format="delta")
    job = Job("r", "r", "r", registry.sources()["postgresql"], None, PLUGIN, params)

    def work() -> None:
        with opening.opened_for(job, RunnerSettings(spark_remote="sc://host")):
            if is_killed:
                spark.jvm.kill()
            raise ConnectionRefusedError("Connection refused")

    try:
        with pytest.raises(ReplicationError if is_killed else ConnectionRefusedError) as caught:
            work()
        assert spark.stopped is not is_killed
        if is_killed:
            assert getattr(caught.value, "code", "") == "run:spark-lost"
    finally:
        spark.jvm.kill()
        spark.jvm.wait()
