"""What a store remembers of quarantined rows. `quarantine` decides what happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from replicators.connectors.model.schema import TableId

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One quarantined change, known by (generation, sequence); negative sequences belong to the
    snapshot, and to rows that the target itself refused. `key` and `reason` are for people. `image`
    holds what `images` wrote. `is_accepted`: NULL may replace the unsupported value."""

    sequence: int
    key: str
    reason: str
    image: bytes
    is_accepted: bool = False


class Quarantine(Protocol):
    """The part of the store that keeps quarantined rows."""

    def quarantined(self, table: TableId, generation: int, upto: int) -> list[QuarantinedRow]:
        """The changes that are quarantined once the table is merged up to `upto`, by sequence."""
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
        """Call it before the merge from `after` to `at`: the merge quarantines these rows and frees
        those with these sequences. A repeat changes nothing. Nothing is freed until the table is
        merged up to `at`. It undoes what an interrupted merge from `after` had quarantined and
        freed: that merge may have ended earlier or later than the one that replaces it. `after`
        None: a first copy."""
        ...

    def record_refused(
        self, table: TableId, generation: int, rows: Sequence[QuarantinedRow]
    ) -> None:
        """The rows that the target of a generation refuses now, in place of those recorded before.
        Idempotent."""
        ...

    def quarantined_forget(self, table: TableId, generation: int) -> None:
        """The table's copy of this generation begins: no row of it is quarantined yet.
        Idempotent."""
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

    def record_refused(
        self, table: TableId, generation: int, rows: Sequence[QuarantinedRow]
    ) -> None:
        self.quarantined_forget(table, generation)
        self.record_quarantined(table, generation, rows)

    def quarantined_forget(self, table: TableId, generation: int) -> None:
        self._write()
        self._quarantined = {
            p: v for p, v in self._quarantined.items() if p[:2] != (table, generation)
        }

    def accept_quarantined(self, table: TableId) -> None:
        """A person accepts that NULL replaces the unsupported values."""
        for place, (row, freed) in self._quarantined.items():
            if place[0] == table:
                self._quarantined[place] = (replace(row, is_accepted=True), freed)


def image_names(rows: Sequence[QuarantinedRow]) -> set[str]:
    """The names of the columns that have values in quarantined changes, as they were then."""
    return {name for row in rows for name in pa.ipc.open_stream(row.image).schema.names}
