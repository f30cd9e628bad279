"""The JVM's archive of classes is made by set-up, used by every session, and nothing fails without
it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runners.engine.tasks.spark import class_archive, class_options

ROOT = Path(__file__).resolve().parents[2]
OPEN = """
import sys
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.spark import open_session
from replicators.targets.lakehouse import PLUGIN
params = PLUGIN.rehearsals(sys.argv[2])[0]
settings = RunnerSettings(jars_dir=sys.argv[1], spark_java_options=f"-Xlog:class+load:file={sys.argv[2]}/loaded")
session = open_session(settings, "test", PLUGIN.jars(params), PLUGIN.spark_conf(params))
session.sql("CREATE NAMESPACE lakehouse.shop")
session.sql("CREATE TABLE lakehouse.shop.t (id bigint) USING iceberg")
session.stop()
"""  # noqa: E501
FROM_ARCHIVE = "shared objects file (top)"


def loaded(jars: Path, folder: Path) -> list[str]:
    """What a session's JVM told of each class that it loaded."""
    command = [sys.executable, "-c", OPEN, str(jars), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return (folder / "loaded").read_text().splitlines()


@pytest.mark.spark
def test_sparks_and_icebergs_classes_come_from_the_archive_that_set_up_made(tmp_path: Path) -> None:
    """Fails where `class_options` is empty, or the archive does not fit Java or the jars."""
    jars = ROOT / "var" / "jars"
    assert class_archive(str(jars)).is_file(), "make setup writes it"
    lines = loaded(jars, tmp_path)
    ours = [line for line in lines if FROM_ARCHIVE in line]
    assert len(ours) > len(lines) / 3
    assert any(" org.apache.iceberg.spark.SparkCatalog " in line for line in ours)


@pytest.mark.spark
@pytest.mark.long
def test_an_archive_that_does_not_fit_is_passed_over(tmp_path: Path) -> None:
    """As after an update of Java: the session opens, with classes from the jars."""
    jars = tmp_path / "jars"
    jars.mkdir()
    for jar in (ROOT / "var" / "jars").glob("*.jar"):
        (jars / jar.name).symlink_to(jar)
    class_archive(str(jars)).write_bytes(b"of another Java")
    assert not any(FROM_ARCHIVE in line for line in loaded(jars, tmp_path))


def test_without_an_archive_the_jvm_is_told_nothing(tmp_path: Path) -> None:
    """Guards `spark.class_options`: a JVM that is told of an archive which is not there says so at
    each start."""
    assert class_options(str(tmp_path)) == ""
