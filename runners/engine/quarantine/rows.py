"""What a store remembers of parked rows; what is done with them is `parking`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from replicators.connectors.model.schema import TableId

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """One change that waits, known by (generation, sequence); negative sequences are of the snapshot. `key` and `reason` are
    for people, `image` is what `images` wrote. `is_accepted`: NULL may take the place of what does not fit."""

    sequence: int
    key: str
    reason: str
    image: bytes
    is_accepted: bool = False


class Parking(Protocol):
    """The part of the store that keeps parked rows."""

    def parked(self, table: TableId, generation: int, upto: int) -> list[ParkedRow]:
        """Those that wait once the table is merged up to `upto`, by sequence."""
        ...

    def record_parked(
        self,
        table: TableId,
        generation: int,
        rows: Sequence[ParkedRow],
        freed: Sequence[int] = (),
        at: int = 0,
        after: int | None = None,
    ) -> None:
        """Before the merge from `after` to `at`: it parks these rows and frees those with these sequences. Done again it changes
        nothing; as long as the table is not merged up to `at`, nothing is freed. What a merge from `after` that was cut off had parked
        and freed is undone: it may have reached less far, or further, than the one that takes its place. None: a first copy's."""
        ...

    def parked_forget(self, table: TableId, generation: int) -> None:
        """The table's copy of this generation begins: nothing of it waits yet. Idempotent."""
        ...


class MemoryParking:
    """The twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._parked: dict[tuple[TableId, int, int], tuple[ParkedRow, int]] = {}

    def _write(self) -> None:
        raise NotImplementedError

    def parked(self, table: TableId, generation: int, upto: int) -> list[ParkedRow]:
        found = [
            row
            for (t, g, sequence), (row, freed) in self._parked.items()
            if (t, g) == (table, generation) and sequence <= upto < freed
        ]
        return sorted(found, key=lambda r: r.sequence)

    def record_parked(
        self,
        table: TableId,
        generation: int,
        rows: Sequence[ParkedRow],
        freed: Sequence[int] = (),
        at: int = 0,
        after: int | None = None,
    ) -> None:
        self._write()
        if after is not None:
            self._undo(table, generation, after)
        for row in rows:
            self._parked.setdefault((table, generation, row.sequence), (row, NEVER))
        for sequence in freed:
            place = (table, generation, sequence)
            self._parked[place] = (self._parked[place][0], at)

    def _undo(self, table: TableId, generation: int, after: int) -> None:
        for place, (row, freed) in list(self._parked.items()):
            if place[:2] == (table, generation):
                if row.sequence > after:
                    del self._parked[place]
                elif freed > after:
                    self._parked[place] = (row, NEVER)

    def parked_forget(self, table: TableId, generation: int) -> None:
        self._write()
        self._parked = {p: v for p, v in self._parked.items() if p[:2] != (table, generation)}

    def accept_parked(self, table: TableId) -> None:
        """A person lets NULL take the place of what does not fit."""
        for place, (row, freed) in self._parked.items():
            if place[0] == table:
                self._parked[place] = (replace(row, is_accepted=True), freed)
