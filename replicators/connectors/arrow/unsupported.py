"""Unsupported values: those that the neutral types can't carry. Rows that hold some are marked
(`changes.FAULT_FIELDS`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.schema import Column

Fault = tuple[int, int, str]
"""Row, column (both by number), and why."""


@dataclass(frozen=True, slots=True)
class UnsupportedValues:
    """`marks` and `reasons` are the columns `FAULT_FIELDS`, as long as the rows."""

    marks: pa.Array
    reasons: pa.Array

    def __bool__(self) -> bool:
        """Whether any row holds such a value."""
        return bool(self.marks.null_count < len(self.marks))


def unsupported_values(
    faults: Iterable[Fault], rows: int, columns: Sequence[Column]
) -> UnsupportedValues:
    """The marks of so many rows. The faults are few and come one by one."""
    width = (len(columns) + 7) // 8
    marks: list[bytearray | None] = [None] * rows
    reasons: list[str | None] = [None] * rows
    for row, column, reason in faults:
        bits = marks[row] = marks[row] or bytearray(width)
        bits[column >> 3] |= 1 << (column & 7)
        reported = f"{columns[column].name}: {reason}"
        reasons[row] = reported if reasons[row] is None else f"{reasons[row]}; {reported}"
    return UnsupportedValues(
        pa.array([None if m is None else bytes(m) for m in marks], FAULT_FIELDS[0].type),
        pa.array(reasons, FAULT_FIELDS[1].type),
    )


def refilled(
    old: pa.StructArray, columns: Sequence[Column], fitting: Mapping[str, pa.Array]
) -> pa.StructArray:
    """Before images whose fields are these columns. Columns that could not be read at once get the
    values that fit."""
    arrays = [fitting.get(c.name, old.field(i)) for i, c in enumerate(columns)]
    return pa.StructArray.from_arrays(arrays, [c.name for c in columns], mask=old.is_null())
