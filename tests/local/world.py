"""Worlds whose run needs no JVM; the rest is `tests.harness`."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any, ClassVar

from replicators.connectors import registry
from tests.harness import World
from tests.local import duck
from tests.local.tables import LocalTable
from tests.local.target import NAME, PLUGIN


class LocalCopies(World):
    """The part of a world that differs: its copies are Parquet files of `tests.local`. A start
    takes about three seconds of CPU, not twenty."""

    program: ClassVar[tuple[str, ...]] = ("-m", "tests.local.run")

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


class DuckCopies(LocalCopies):
    """The copies are tables of a DuckDB file, written as any SQL target is."""

    publishes_at_once = True

    def target_params(self) -> tuple[str, dict[str, Any]]:
        registry.targets()[duck.NAME] = duck.PLUGIN
        given = {
            "path": str(self.folder / "copies.db"),
            "folder": str(self.folder / "files"),
            "publishes_at_once": self.publishes_at_once,
        }
        return duck.NAME, {**given, **self.target}

    def close(self) -> None:
        super().close()
        registry.targets().pop(duck.NAME, None)

    @property
    def client(self) -> duck.DuckClient:
        """Reads the file while no run has it open."""
        return duck.DuckClient(str(self.folder / "copies.db"))

    def has_target(self, name: str) -> bool:
        return self.client.table((self.schema, name)) is not None

    def target_rows(self, name: str) -> list[dict[str, Any]]:
        rows = self.client.records((self.schema, name))
        return [{c: _as_in_a_lakehouse(v) for c, v in row.items()} for row in rows]

    def tokens(self, name: str) -> list[int]:
        rows = self.client.records((self.schema, "_replicator_progress"))
        return [row["sequence"] for row in rows if row["target_table"] == name]

    def left_over(self, name: str) -> set[str]:
        """Our own tables besides the progress table."""
        found = self.client.tables((self.schema,), "_replicator_")
        return set(found) - {"_replicator_progress"}


class DuckCopiesInTwoSteps(DuckCopies):
    """Published first and recorded afterwards, as where a database's DDL takes no part in a
    transaction."""

    publishes_at_once = False


def _as_in_a_lakehouse(value: Any) -> Any:
    """Times of day are text there."""
    if isinstance(value, list):
        return [_as_in_a_lakehouse(v) for v in value]
    return value.isoformat("microseconds") if isinstance(value, dt.time) else value


@cache
def local_twin(kind: type[World]) -> type[World]:
    """The same world of a source, without a JVM."""
    return type(f"Local{kind.__name__}", (LocalCopies, kind), {})
