"""The data of the in-memory source: rows, and the transactions that changed them. Tests fill it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from replicators.connectors.model.changes import Op
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one row: `new` is the row afterwards, `old` the row before; TRUNCATE has neither.
    `schema` is the whole schema of the table at that time; `commit` sets it."""

    table: TableId
    op: Op
    new: Row | None = None
    old: Row | None = None
    schema: TableSchema | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that were committed together. `number` counts the transactions; it is also the
    position behind this one."""

    number: int
    committed_at: float
    changes: tuple[Change, ...]


class Database:
    """Thread safe. `slots` holds the position that each reader acknowledged; transactions after it
    are kept for that reader. `version` counts the schemas created."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[TableId, list[Row]] = {}
        self._transactions: list[Transaction] = []
        self._incarnation = uuid.uuid4().hex
        self.tables: dict[TableId, TableSchema] = {}
        self.slots: dict[str, int] = {}
        self.end = 1
        self.version = 0

    def create(self, schema: TableSchema) -> None:
        """Create a table, or give it another schema; its rows stay."""
        with self._lock:
            self.tables[schema.id] = schema
            self.version += 1

    def commit(self, *changes: Change) -> int:
        """Commit one transaction; return the position behind it. An update or delete names its row
        by `old`."""
        with self._lock:
            reported = tuple(replace(c, schema=self.tables[c.table]) for c in changes)
            for change in reported:
                self._apply(change)
            self.end += 1
            self._transactions.append(Transaction(self.end, time.time(), reported))
            return self.end

    def _apply(self, change: Change) -> None:
        rows = self._rows.setdefault(change.table, [])
        if change.op is Op.TRUNCATE:
            rows.clear()
        if change.old is not None:
            rows.remove(change.old)
        if change.new is not None:
            rows.append(change.new)

    def view(self) -> tuple[int, dict[TableId, list[Row]]]:
        """The current position, and every table's rows."""
        with self._lock:
            return self.end, {table: list(rows) for table, rows in self._rows.items()}

    def after(self, position: int) -> list[Transaction]:
        """The transactions committed after a position."""
        with self._lock:
            return [t for t in self._transactions if t.number > position]

    def position(self, number: int) -> Position:
        """A position of this database."""
        return Position(number, {"incarnation": self._incarnation})

    def hold(self, slot: str, position: Position) -> None:
        """Keep the transactions after `position` for that reader."""
        with self._lock:
            self.slots[slot] = max(position.ordinal, self.slots.get(slot, 0))
            kept = min(self.slots.values())
            self._transactions = [t for t in self._transactions if t.number > kept]

    def require(self, slot: str, position: Position) -> None:
        """Raise where a change after `position` may have been discarded."""
        with self._lock:
            if position.detail.get("incarnation") != self._incarnation:
                raise ReplicationError("source:position-lost", reason="it is another database")
            if slot not in self.slots:
                raise ReplicationError("source:slot-missing", slot=slot)
            if position.ordinal < self.slots[slot]:
                reason = "later changes were acknowledged"
                raise ReplicationError("source:position-lost", reason=reason)


@cache
def database(host: str) -> Database:
    """The database of a host."""
    return Database()


def insert(table: TableId, new: Row) -> Change:
    return Change(table, Op.INSERT, new)


def update(table: TableId, old: Row, new: Row) -> Change:
    return Change(table, Op.UPDATE, new, old)


def delete(table: TableId, old: Row) -> Change:
    return Change(table, Op.DELETE, None, old)


def truncate(table: TableId) -> Change:
    return Change(table, Op.TRUNCATE)
