"""Worlds whose run needs no JVM; the rest is `tests.harness`."""

from __future__ import annotations

import datetime as dt
import sys
from functools import cache
from typing import Any, ClassVar

from replicators.connectors import registry
from tests.harness import World
from tests.local.tables import LocalTable
from tests.local.target import NAME, PLUGIN


class LocalCopies(World):
    """The part of a world that differs: its copies are Parquet files of `tests.local`. A start
    takes about three seconds of CPU, not twenty."""

    program: ClassVar[tuple[str, ...]] = (sys.executable, "-m", "tests.local.run")

    def target_params(self) -> tuple[str, dict[str, Any]]:
        registry.targets()[NAME] = PLUGIN
        return NAME, {"folder": str(self.warehouse), **self.target}

    def close(self) -> None:
        super().close()
        registry.targets().pop(NAME, None)

    def table(self, name: str) -> LocalTable:
        """The copy's folder."""
        return LocalTable(self.warehouse / self.schema / name)

    def has_target(self, name: str) -> bool:
        return self.table(name).state() is not None

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        rows = self.table(name).rows().to_pylist()
        return [{c: _as_in_a_lakehouse(v) for c, v in row.items()} for row in rows]

    def tokens(self, name: str) -> list[int]:
        return [state.sequence for state in self.table(name).versions()]

    def left_over(self, name: str) -> set[str]:
        return {p.name for p in self.table(name).folder.glob("staging-*")}


def _as_in_a_lakehouse(value: Any) -> Any:
    """Times of day are text there."""
    if isinstance(value, list):
        return [_as_in_a_lakehouse(v) for v in value]
    return value.isoformat("microseconds") if isinstance(value, dt.time) else value


@cache
def local_twin(kind: type[World]) -> type[World]:
    """The same world of a source, without a JVM."""
    return type(f"Local{kind.__name__}", (LocalCopies, kind), {})
