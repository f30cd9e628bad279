"""Differing rows as people see them: both values side by side, masked for people who may not see
values. No queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replicators.connectors.addresses import MASK
from runners.engine.verify.report import Kind
from runners.states import COLOURS, LABELS, RepairState
from runners.verifications import DifferingRow
from runners.verifying.outcomes import KINDS

Pairs = Sequence[Sequence[Any]] | None
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a row with its value on both sides; None is NULL. `is_source`, `is_target`:
    whether that side has the row."""

    column: str
    source: Any
    target: Any
    is_different: bool
    is_source: bool
    is_target: bool


@dataclass(frozen=True, slots=True)
class RowShown:
    """A differing row. `differing` and `equal` are its columns. `key` is its key as text, or the
    key's hash where values are masked."""

    row: DifferingRow
    key: str
    differing: tuple[Cell, ...]
    equal: tuple[Cell, ...]
    is_masked: bool

    @property
    def label(self) -> str:
        """How it differs, in a word."""
        return KINDS[Kind(self.row.kind)][0]

    @property
    def about(self) -> str:
        """How it differs, in a sentence."""
        if self.row.is_unsettled:
            return "It changes too often to be compared, or its change is still on its way."
        return KINDS[Kind(self.row.kind)][1]

    @property
    def colour(self) -> str:
        """The colour of its kind."""
        return "amber" if self.row.is_unsettled else "red"

    @property
    def repair(self) -> tuple[str, str, str] | None:
        """State, label and colour of its last repair."""
        found = self.row.repair
        if found is None:
            return None
        label = f"Repair {LABELS[found.state]}"
        if found.state == RepairState.DONE:
            label = f"Repair done, {found.rows_left} left" if found.rows_left else "Repaired"
        return found.state, label.capitalize(), COLOURS[found.state]

    @property
    def is_repairable(self) -> bool:
        """Whether a repair may be asked for."""
        found = self.row.repair
        return not self.row.is_unsettled and (found is None or found.state == RepairState.REFUSED)

    @property
    def has_copies(self) -> bool:
        """Whether a table without a key has the row more than once on a side."""
        return any(n > 1 for n in self.row.copies)

    def to_json(self) -> dict[str, Any]:
        """The form of REST; masked values are the mask."""
        row = self.row

        def side(pairs: Pairs) -> dict[str, Any] | None:
            if pairs is None:
                return None
            return {str(n): MASK if self.is_masked else v for n, v in pairs}

        return {
            "id": row.pk,
            "kind": row.kind,
            "is_unsettled": row.is_unsettled,
            "key": side(row.key),
            "key_hash": row.key_hash,
            "columns": row.columns,
            "source": side(row.source),
            "target": side(row.target),
            "copies": row.copies,
            "repair": row.repair_id,
            "repair_state": row.repair.state if row.repair is not None else None,
        }


def row_shown(row: DifferingRow, *, may_see: bool) -> RowShown:
    """A row for a person; `may_see`: whether the person may see values."""
    source, target = dict(row.source or ()), dict(row.target or ())
    is_source, is_target = row.source is not None, row.target is not None
    differing = set(row.columns) if is_source and is_target else {*source, *target}
    keys = {name for name, _ in row.key}
    cells = []
    for name in dict.fromkeys([*source, *target]):
        left, right = source.get(name), target.get(name)
        if not may_see:
            left, right = MASK, MASK
        is_different = name in differing
        cells.append(Cell(name, left, right, is_different, is_source, is_target))
    shown = [c for c in cells if c.is_different and c.column not in keys]
    rest = [c for c in cells if not c.is_different and c.column not in keys]
    key = key_text(row.key) if may_see else f"#{row.key_hash}"
    return RowShown(row, key, tuple(shown), tuple(rest), not may_see)


def key_text(key: Pairs) -> str:
    """A key as `name = value` for each column."""
    return ", ".join(f"{n} = {'NULL' if v is None else v}" for n, v in key or ())
