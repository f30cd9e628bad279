"""What a store remembers of repairs: rows of a table that a person asks to be written again from
the source. `apply.repair` does them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError


@dataclass(frozen=True, slots=True)
class RepairRow:
    """A repair that is asked for. `number` is the store's own. `count`: of its keys."""

    number: int
    table: TableId
    count: int = 0


@dataclass(frozen=True, slots=True)
class RepairCounts:
    """What a repair did with its keys: `written` rows from the source, `deleted` rows that the
    source does not have, `equal` rows that were right already. `left` keys stay as they are: their
    rows wait in the quarantine, or changed each time that they were read."""

    written: int = 0
    deleted: int = 0
    equal: int = 0
    left: int = 0

    def __add__(self, other: RepairCounts) -> RepairCounts:
        return RepairCounts(
            self.written + other.written,
            self.deleted + other.deleted,
            self.equal + other.equal,
            self.left + other.left,
        )


class Repairs(Protocol):
    """The part of the store that keeps repairs."""

    def repairs(self) -> Sequence[RepairRow]:
        """The repairs that are asked for and not done, the oldest first. It may be half a second
        behind people's actions."""
        ...

    def repair_keys(self, repair: RepairRow, schema: TableSchema) -> pa.Table:
        """The keys to repair: the key's columns of `schema`, in their neutral types. ValueError
        where they are keys of another schema."""
        ...

    def record_repaired(self, repair: RepairRow, counts: RepairCounts) -> None:
        """The repair is done. An event row is written in the same transaction. A repeat changes
        nothing."""
        ...

    def record_repair_refused(self, repair: RepairRow, error: ReplicationError) -> None:
        """The repair can't be done, and the error says why. An event row is written in the same
        transaction. A repeat changes nothing."""
        ...


class MemoryRepairs:
    """The twin in memory. `ask_repair` is what a person does."""

    def __init__(self) -> None:
        super().__init__()
        self._repairs: dict[int, tuple[RepairRow, pa.Table]] = {}
        self.repaired: dict[int, RepairCounts] = {}
        self.repairs_refused: dict[int, tuple[str, Mapping[str, str]]] = {}

    def _write(self) -> None:
        raise NotImplementedError

    def ask_repair(self, table: TableId, keys: pa.Table) -> RepairRow:
        """Ask for these keys to be repaired."""
        number = 1 + max([*self._repairs, *self.repaired, *self.repairs_refused], default=0)
        row = RepairRow(number, table, keys.num_rows)
        self._repairs[number] = (row, keys)
        return row

    def repairs(self) -> Sequence[RepairRow]:
        return [row for row, _ in self._repairs.values()]

    def repair_keys(self, repair: RepairRow, schema: TableSchema) -> pa.Table:
        keys = self._repairs[repair.number][1]
        if set(keys.column_names) != set(schema.key):
            raise ValueError("these are keys of another schema")
        return keys.select(list(schema.key))

    def record_repaired(self, repair: RepairRow, counts: RepairCounts) -> None:
        self._write()
        if self._repairs.pop(repair.number, None) is not None:
            self.repaired[repair.number] = counts

    def record_repair_refused(self, repair: RepairRow, error: ReplicationError) -> None:
        self._write()
        if self._repairs.pop(repair.number, None) is not None:
            self.repairs_refused[repair.number] = (error.code, error.facts)
