"""A world whose run needs no JVM; the rest is `tests.harness`."""

from __future__ import annotations

import sys
from typing import Any

from replicators.connectors import registry
from tests.harness import World
from tests.local.tables import LocalTable
from tests.local.target import NAME, PLUGIN


class LocalWorld(World):
    """Its copies lie in Parquet files of `tests.local`. A start takes about two seconds of CPU."""

    program = (sys.executable, "-m", "tests.local.run")

    def target_params(self) -> tuple[str, dict[str, Any]]:
        registry.targets()[NAME] = PLUGIN
        return NAME, {"folder": str(self.warehouse), **self.target}

    def close(self) -> None:
        super().close()
        registry.targets().pop(NAME, None)

    def table(self, name: str) -> LocalTable:
        """The copy's folder."""
        return LocalTable(self.warehouse / self.schema / name)

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        return list(self.table(name).rows().to_pylist())

    def tokens(self, name: str) -> list[int]:
        return [state.sequence for state in self.table(name).versions()]
