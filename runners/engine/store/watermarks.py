"""What the store remembers of the moments at which several tables of the target are level."""

from __future__ import annotations

from typing import Protocol

from replicators.connectors.model.schema import TableId
from replicators.connectors.model.watermarks import Watermark

__all__ = ["MemoryWatermarks", "Watermark", "Watermarks", "most_kept"]

ENTRIES_KEPT = 100_000
LEAST_KEPT = 20


def most_kept(tables: int) -> int:
    """The most watermarks over that many tables that are kept: this bounds their entries."""
    return max(LEAST_KEPT, ENTRIES_KEPT // max(1, tables))


class Watermarks(Protocol):
    """The part of the store that remembers watermarks."""

    def record_watermark(self, watermark: Watermark) -> None:
        """Publish a watermark: one row, in one transaction. Watermarks that can't be read any more
        are deleted; the newest always stays."""
        ...

    def forget_versions(self, table: TableId) -> None:
        """The target's table was dropped: no watermark names a version of it any more."""
        ...


class MemoryWatermarks:
    """The twin in memory."""

    def __init__(self) -> None:
        self.watermarks: list[Watermark] = []

    def _write(self) -> None:
        raise NotImplementedError

    def record_watermark(self, watermark: Watermark) -> None:
        self._write()
        self.watermarks.append(watermark)

    def forget_versions(self, table: TableId) -> None:
        self._write()
        for mark in self.watermarks:
            if mark.versions.pop(table, None) is not None:
                mark.left_out[table] = "dropped"
