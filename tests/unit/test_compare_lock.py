"""Two comparisons of one data set at once, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replicators.connectors.compare.config import CompareConfig, parse
from replicators.connectors.compare.lock import lock_path, locked
from replicators.connectors.problems.errors import ReplicationError

SETTINGS = "keys: {{id: int}}\ncurrent: {{path: {0}/current}}\nhistory: {{path: {0}/history}}\n"
TABLES = (
    "keys: {{id: int}}\nformat: iceberg\ncurrent: {{table: shop.people}}\n"
    "history: {{table: shop.people_history}}\n"
    "catalog: {{type: jdbc, uri: 'sqlite:///{0}/catalog.db', warehouse: {1}}}\n"
)
HOLDER = """
import sys
from replicators.connectors.compare.config import parse
from replicators.connectors.compare.lock import locked
with locked(parse(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(settings: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until it is ended."""
    argv, pipe = [sys.executable, "-c", HOLDER, settings], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("form", ["folders", "tables"])
def test_a_second_comparison_is_refused_until_the_first_one_is_gone(
    tmp_path: Path, form: str
) -> None:
    """Guards two comparisons at once: the second one names the first. A process that was killed
    holds nothing."""
    settings = (SETTINGS if form == "folders" else TABLES).format(tmp_path, tmp_path / "lake")
    with holder(settings) as process:
        with pytest.raises(ReplicationError) as caught, locked(parse(settings)):
            pass
        assert caught.value.code == "compare:busy"
        assert caught.value.facts["process"] == str(process.pid)
        assert "{" not in caught.value.message.text
        process.kill()
        process.wait()
        with locked(parse(settings)):
            pass


def test_another_data_set_is_free(tmp_path: Path) -> None:
    settings = SETTINGS.format(tmp_path)
    other = settings.replace("/current", "/other")
    with holder(settings), locked(parse(other)):
        assert Path(lock_path(parse(other))).exists()


def test_a_place_that_is_no_folder_has_no_lock(tmp_path: Path) -> None:
    """There the check before publishing is all there is."""

    def path_of(settings: str) -> str:
        config: CompareConfig = parse(settings)
        return lock_path(config)

    assert path_of(SETTINGS.format("s3://bucket")) == ""
    assert path_of(TABLES.format(tmp_path, "s3://bucket/lake")) == ""
