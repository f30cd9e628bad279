"""What a store remembers of quarantined rows; what is done with them is `quarantine`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from replicators.connectors.model.schema import TableId

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One change that waits, known by (generation, sequence); negative sequences are of the
    snapshot. `key` and `reason` are for people, `image` is what `images` wrote. `is_accepted`: NULL
    may take the place of what does not fit."""

    sequence: int
    key: str
    reason: str
    image: bytes
    is_accepted: bool = False


class Quarantine(Protocol):
    """The part of the store that keeps quarantined rows."""

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedRow]:
        """Those that wait once the table is merged up to `upto`, by sequence."""
        ...

    def record_quarantined(
        self,
        table: TableId,
        generation: int,
        rows: Sequence[QuarantinedRow],
        freed: Sequence[int] = (),
        at: int = 0,
        after: int | None = None,
    ) -> None:
        """Before the merge from `after` to `at`: it quarantines these rows and frees those with
        these sequences. Done again it changes nothing; as long as the table is not merged up to
        `at`, nothing is freed. What a merge from `after` that was cut off had quarantined and freed
        is undone: it may have reached less far, or further, than the one that takes its place.
        None: a first copy's."""
        ...

    def quarantined_forget(self, table: TableId, generation: int) -> None:
        """The table's copy of this generation begins: nothing of it waits yet. Idempotent."""
        ...


class MemoryQuarantine:
    """The twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._quarantined: dict[tuple[TableId, int, int], tuple[QuarantinedRow, int]] = {}

    def _write(self) -> None:
        raise NotImplementedError

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedRow]:
        found = [
            row
            for (t, g, sequence), (row, freed) in self._quarantined.items()
            if (t, g) == (table, generation) and sequence <= upto < freed
        ]
        return sorted(found, key=lambda r: r.sequence)

    def record_quarantined(
        self,
        table: TableId,
        generation: int,
        rows: Sequence[QuarantinedRow],
        freed: Sequence[int] = (),
        at: int = 0,
        after: int | None = None,
    ) -> None:
        self._write()
        if after is not None:
            self._undo(table, generation, after)
        for row in rows:
            self._quarantined.setdefault((table, generation, row.sequence), (row, NEVER))
        for sequence in freed:
            place = (table, generation, sequence)
            self._quarantined[place] = (self._quarantined[place][0], at)

    def _undo(self, table: TableId, generation: int, after: int) -> None:
        for place, (row, freed) in list(self._quarantined.items()):
            if place[:2] == (table, generation):
                if row.sequence > after:
                    del self._quarantined[place]
                elif freed > after:
                    self._quarantined[place] = (row, NEVER)

    def quarantined_forget(self, table: TableId, generation: int) -> None:
        self._write()
        self._quarantined = {
            p: v for p, v in self._quarantined.items() if p[:2] != (table, generation)
        }

    def accept_quarantined(self, table: TableId) -> None:
        """A person lets NULL take the place of what does not fit."""
        for place, (row, freed) in self._quarantined.items():
            if place[0] == table:
                self._quarantined[place] = (replace(row, is_accepted=True), freed)


def image_names(rows: Sequence[QuarantinedRow]) -> set[str]:
    """The columns of which quarantined changes have values, by their names of then."""
    return {name for row in rows for name in pa.ipc.open_stream(row.image).schema.names}
