"""What the engine tells of schemas and tables beside their states: the part of the store that hears
it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replicators.connectors.model.schema import TableId


class Events(Protocol):
    """Events that change no state, and tables that come and go at the source."""

    def event(self, kind: str, table: TableId, **facts: str) -> None:
        """An event row that tells of something that changed no state."""
        ...

    def waits(self, text: str, *, is_new: bool) -> None:
        """The source keeps this run waiting, for what `text` says; told again each second while it
        does. `is_new`: for somebody else than before, which is an event."""
        ...

    def tables_appeared(self, tables: Sequence[TableId]) -> None:
        """All tables that are there at the source and were never chosen; what becomes of them,
        people or their policy say."""
        ...

    def table_vanished(self, table: TableId) -> bool:
        """The table is gone at the source, and the policy is to remove it with its copy. False
        where that can't be: it is the last one."""
        ...


class MemoryEvents:
    """The twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[TableId, str, dict[str, str]]] = []
        self.appeared: tuple[TableId, ...] = ()
        self.vanished: list[TableId] = []
        self.waited: list[tuple[str, bool]] = []

    def _write(self) -> None:
        raise NotImplementedError

    def event(self, kind: str, table: TableId, **facts: str) -> None:
        self._write()
        self.told.append((table, kind, facts))

    def waits(self, text: str, *, is_new: bool) -> None:
        self._write()
        self.waited.append((text, is_new))

    def tables_appeared(self, tables: Sequence[TableId]) -> None:
        self._write()
        self.appeared = tuple(tables)

    def table_vanished(self, table: TableId) -> bool:
        self._write()
        self.vanished.append(table)
        return True
