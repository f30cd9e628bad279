"""What the demo's parent stops: also what is started while it stops the rest."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from demo.place import Place
from demo.processes import MARK, Identity, descendants, marked, stop_all, wait_until

STARTS_ANOTHER_AS_IT_ENDS = """
trap 'setsid sleep 60 & exit 0' TERM
touch "$1"
while :; do sleep 0.05; done
"""


def test_what_is_started_while_the_rest_is_stopped_is_stopped_too(tmp_path: Path) -> None:
    """Guards that `stop_all` asks again what is there: a run that is being stopped may just have
    started its JVM."""
    ready = tmp_path / "ready"
    child = subprocess.Popen(
        ["sh", "-c", STARTS_ANOTHER_AS_IT_ENDS, "sh", str(ready)],
        env=os.environ | {MARK: str(tmp_path)},
        start_new_session=True,
    )
    assert wait_until(ready.exists, 10.0)
    stop_all(lambda: marked(tmp_path), 5.0)
    assert child.wait(5) == 0, "it was killed before it could start another"
    assert not marked(tmp_path)


def test_one_look_that_finds_nothing_is_not_enough(tmp_path: Path) -> None:
    """Guards the second look: a process that was started during the first one is on no list, and
    the one that started it is gone."""
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    known = Identity.of(child.pid)
    assert known is not None
    looks: list[set[Identity]] = [set(), {known}]
    stop_all(lambda: looks.pop(0) if looks else set(), 5.0)
    assert child.wait(5) == -15


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    """Guards SIGKILL after the time."""
    ready = tmp_path / "ready"
    child = subprocess.Popen(
        ["sh", "-c", 'trap "" TERM; touch "$1"; while :; do sleep 0.05; done', "sh", str(ready)],
        env=os.environ | {MARK: str(tmp_path)},
        start_new_session=True,
    )
    assert wait_until(ready.exists, 10.0)
    known = Identity.of(child.pid)
    assert known is not None
    stop_all(lambda: marked(tmp_path) | descendants([child.pid]), 0.3)
    assert child.wait(5) == -9
    assert not known.is_alive()
    assert not marked(tmp_path)


@pytest.mark.parametrize(("is_dev", "debug"), [(True, "true"), (False, "false")])
def test_only_the_development_servers_have_debug_whatever_the_shell_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dev: bool, debug: str
) -> None:
    """Guards `Place.environment`: the program is production unless told otherwise, and the demo
    shows it as it would run there."""
    monkeypatch.setenv("DEBUG", "false" if is_dev else "true")
    environment = Place(tmp_path, is_dev=is_dev).environment(redis_url="")
    assert environment["DEBUG"] == debug
    assert is_dev or Path(environment["SECRET_KEY_FILE"]).exists()
