"""The part of the store that records the engine's events about schemas and tables, beside their
states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from replicators.connectors.model.schema import TableId


class Events(Protocol):
    """Events that change no state, and tables that come and go at the source."""

    def event(self, kind: str, table: TableId, **facts: str) -> None:
        """Write an event row about something that changed no state."""
        ...

    def waits(self, text: str, *, is_new: bool) -> None:
        """The source keeps this run waiting; `text` says for what. Called each second while that
        lasts. `is_new`: the run waits for somebody else than before, so an event is written."""
        ...

    def tables_appeared(self, tables: Sequence[TableId]) -> None:
        """All tables that exist at the source and were never chosen. People or their policy decide
        what becomes of them."""
        ...

    def table_vanished(self, table: TableId) -> bool:
        """The table is gone at the source, and the policy is to remove it with its copy. Returns
        False where that is not possible: it is the last table."""
        ...


class MemoryEvents:
    """The twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[tuple[TableId, str, dict[str, str]]] = []
        self.appeared: tuple[TableId, ...] = ()
        self.vanished: list[TableId] = []
        self.waited: list[tuple[str, bool]] = []

    def _write(self) -> None:
        raise NotImplementedError

    def event(self, kind: str, table: TableId, **facts: str) -> None:
        self._write()
        self.reported.append((table, kind, facts))

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
