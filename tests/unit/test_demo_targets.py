"""Where the demo copies to: each target's parameters are what its plugin asks for, and a missing
emulator is told in words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from demo import bigquery, targets
from demo.bigquery import BigQueryError
from demo.place import ROOT, Place
from demo.targets import TARGETS
from replicators.config import parse_params
from replicators.connectors import registry


class Emulator:
    """Starts at once, on a port of its own or the one it had."""

    def __init__(self, *, folder: Path, port: int, **_: Any) -> None:
        self.port = port or 4711
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """It needs nothing."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "run")
    made.prepare()
    return made


@pytest.fixture
def postgres() -> Any:
    """A server that is asked for nothing that a test could miss."""
    params = {"host": "127.0.0.1", "port": 5432, "user": "postgres", "password": "p"}
    return SimpleNamespace(
        execute=lambda *_: [], params=lambda database: {**params, "database": database}
    )


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_is_given_what_its_plugin_asks_for(
    name: str, place: Place, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "EmbeddedBigQuery", Emulator)
    if name not in registry.targets():
        pytest.skip(f"there is no plugin {name}")
    opened = TARGETS[name].open(place, postgres)
    parse_params("target", name, opened.params)
    assert TARGETS[name].open(place, postgres).params == opened.params, "it moves at a restart"


def test_an_emulator_that_is_not_set_up_is_told_with_the_command(
    place: Place, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bigquery, "ENVIRONMENT", place.folder / "nothing")
    with pytest.raises(BigQueryError, match="make demo DEMO_TARGET=bigquery"):
        TARGETS["bigquery"].open(place, postgres)


def test_another_word_for_the_target_names_those_that_there_are() -> None:
    environment = os.environ | {"DEMO_TARGET": "oracle"}
    command = [sys.executable, "-m", "demo", "--folder", "/nowhere"]
    said = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert "one of lakehouse, postgresql, bigquery, not oracle" in said.stderr
