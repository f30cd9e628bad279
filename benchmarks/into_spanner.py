"""Databases of the tests' server that plays Spanner."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.played import Played, played
from replicators.connectors import registry
from replicators.connectors.target import TargetPlugin

PROJECT, INSTANCE = "test-project", "main"
_NUMBERS = itertools.count(1)


@dataclass
class IntoSpanner:
    """A database for each side; `fresh` takes a new one."""

    server: Played
    _names: dict[str, str] = field(default_factory=dict)

    @property
    def plugin(self) -> TargetPlugin:
        return registry.targets()["spanner"]

    def values(self, side: str) -> dict[str, Any]:
        place = {"project": PROJECT, "instance": INSTANCE, "database": self._names[side]}
        return {**place, "endpoint": f"http://127.0.0.1:{self.server.port}"}

    def fresh(self, side: str) -> None:
        self._names[side] = f"{side}-{next(_NUMBERS)}"
        self.server.ask(make=self._names[side])

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        """What the client library's helper needs: dlt has no destination for Spanner."""
        return {k: str(v) for k, v in self.values(side).items()}, ""

    def sums(self, side: str) -> tuple[int, ...]:
        return tuple(self.server.ask(sums=self._names[side]))

    def has(self, side: str, key: int) -> bool:
        return bool(self.server.ask(has=[self._names[side], key]))


@contextmanager
def served(folder: Path) -> Iterator[IntoSpanner]:
    """The server, until the end."""
    with played("spanner") as process:
        yield IntoSpanner(process)
