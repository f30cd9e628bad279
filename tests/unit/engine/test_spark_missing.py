"""What a run says where the machine lacks Java or the lakehouse's jars; no session is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicators.connectors.errors import ReplicationError
from runners.engine.settings import RunnerSettings
from runners.engine.spark import open_session


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
    """Guards `spark._jar_paths`: the session would open, and fail at the first table with a class that is not found."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    error = said(tmp_path)
    assert error.code == "run:jars-missing"
    assert str(tmp_path) in error.message.text
