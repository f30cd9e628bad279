"""Puts the dummies' folders beside those of the program's own plugins, for as long as a test
runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import replicators.sources
import replicators.targets
from replicators.connectors import registry

PACKAGES = (replicators.sources, replicators.targets)
OURS = ("replicators.sources.clock", "replicators.targets.paper")


@contextmanager
def dummies() -> Iterator[None]:
    """The registry finds them as it finds any folder, and forgets them afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for package in PACKAGES:
            folder = Path(__file__).parent / package.__name__.rpartition(".")[2]
            patch.setattr(package, "__path__", [*package.__path__, str(folder)])
        registry.forget()
        yield
    for name in {n for n in set(sys.modules) - before if n.startswith(OURS)}:
        del sys.modules[name]
    for package, name in zip(PACKAGES, ("clock", "paper"), strict=True):
        vars(package).pop(name, None)
    registry.forget()
