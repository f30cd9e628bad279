"""Plugins that other packages bring, by entry points: found, and kept apart where they are
broken."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from replicators.config import plugin_of
from replicators.connectors import registry
from replicators.connectors.problems.errors import ReplicationError
from replicators.project.checks import plugins as plugins_checked
from tests.app.pages import page

SHELF = """
from dataclasses import dataclass

from replicators.connectors.params import param
from replicators.connectors.problems.message import Message
from replicators.targets.memory import PLUGIN as MEMORY
from dataclasses import replace


@dataclass(frozen=True, slots=True)
class ShelfParams:
    board: str = param("Board", help="Which board of the shelf.")


PLUGIN = replace(
    MEMORY,
    name="{name}",
    label="Shelf",
    summary="A shelf of another package.",
    params=ShelfParams,
    messages={{"target:{code}": Message("Shelf full", "The board is full.", "Put up another.")}},
    is_hidden=False,
)
"""


class Packages:
    """Installed packages in a folder of their own, with a module each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def install(self, package: str, source: str, name: str, role: str = "target") -> None:
        module = package.replace("-", "_")
        (self._folder / f"{module}.py").write_text(source)
        info = self._folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = f"[replicators.{role}s]\n{name} = {module}:PLUGIN\n"
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()
        registry.forget()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    registry.forget()
    yield Packages(tmp_path)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    monkeypatch.undo()
    registry.forget()


def shelf(name: str = "shelf", code: str = "shelf-full") -> str:
    return SHELF.format(name=name, code=code)


def test_a_plugin_of_a_package_is_one_of_ours(packages: Packages, browser: Client) -> None:
    packages.install("acme-shelf", shelf(), "shelf")
    assert registry.targets()["shelf"].label == "Shelf"
    assert plugin_of("target", "shelf") is registry.targets()["shelf"]
    assert str(ReplicationError("target:shelf-full")) == "target:shelf-full: The board is full."
    assert "shelf" in {p["name"] for p in browser.get("/api/v1/plugins/").json()}
    assert registry.faults() == () and plugins_checked() == []


BROKEN = [
    ("raise RuntimeError('boom')", "shelf", "RuntimeError: boom"),
    ("import sys; sys.exit(3)", "shelf", "SystemExit: 3"),
    ("import a_driver_that_is_missing", "shelf", "No module named 'a_driver_that_is_missing'"),
    ("PLUGIN = 7", "shelf", "it has no PLUGIN of type TargetPlugin"),
    ("OTHER = 7", "shelf", "has no attribute 'PLUGIN'"),
    (shelf("rack"), "shelf", "it calls itself 'rack'"),
    (shelf("lakehouse"), "lakehouse", "the program has one of that name itself"),
    (shelf(code="unreachable"), "shelf", "'target:unreachable' is taken by the program itself"),
    (shelf(code="store-classes"), "shelf", "'target:store-classes' is taken by lakehouse"),
    (shelf().replace("board: str", "board: list"), "shelf", "the parameter 'board' is none of"),
]


@pytest.mark.parametrize(("source", "name", "reported"), BROKEN)
def test_a_broken_plugin_of_a_package_is_left_out_and_named(
    source: str,
    name: str,
    reported: str,
    packages: Packages,
    browser: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The rest of the program goes on, also where the package ends the process at its import."""
    own = set(registry.targets())
    with caplog.at_level(logging.ERROR, "replicators.connectors"):
        packages.install("acme-shelf", source, name)
        assert set(registry.targets()) == own
    (fault,) = registry.faults()
    assert fault.startswith(f"The target '{name}' of the package 'acme-shelf' can't be used: ")
    assert reported in fault and fault in caplog.text
    (found,) = plugins_checked()
    assert found.id == "replicators.W005" and found.msg == fault
    assert registry.targets()["lakehouse"].label == "Lakehouse"
    assert "New replicator" in page(browser, "/replicators/new/")


def test_of_two_packages_with_one_name_neither_is_used(packages: Packages) -> None:
    """Which of them writes a replicator's tables must not hang on the order of their names."""
    packages.install("acme-shelf", shelf(), "shelf")
    packages.install("zeta-shelf", shelf(code="zeta-full"), "shelf")
    assert "shelf" not in registry.targets()
    assert [f.partition("used: ")[2] for f in registry.faults()] == [
        "zeta-shelf brings one of that name too", "acme-shelf brings one of that name too"
    ]  # fmt: skip


def test_a_code_of_two_packages_is_the_firsts(packages: Packages) -> None:
    packages.install("acme-shelf", shelf(), "shelf")
    packages.install("zeta-rack", shelf("zack"), "zack")
    assert "shelf" in registry.targets() and "zack" not in registry.targets()
    assert "'target:shelf-full' is taken by shelf" in registry.faults()[0]
