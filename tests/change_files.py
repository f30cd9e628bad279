"""Change files for tests: changes as rows in the form that decoding writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from replicators.connectors.model.changes import COUNTED, Op, OpCounts, change_schema
from replicators.connectors.model.schema import TableSchema

START = datetime(2026, 11, 24, 7, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row with the columns `id` and `note`. `before` is what the log has of the old
    row. `unsent`: the log did not carry the note."""

    sequence: int
    op: Op
    id: int | None = None
    note: str | None = None
    before: dict[str, Any] | None = None
    unsent: bool = False
    more: tuple[tuple[str, Any], ...] = ()


def changes_table(
    changes: Sequence[Change], schema: TableSchema, *, position: int | None = None
) -> pa.Table:
    """The changes in the form of a change file. `position`: of all of them; otherwise each has that
    of its sequence."""
    place = [c.name for c in schema.columns].index("note")
    bits = bytes(1 << (place & 7) if i == place >> 3 else 0 for i in range((place >> 3) + 1))
    rows = [
        {
            "_sequence": c.sequence,
            "_op": int(c.op),
            "_committed_at": START + timedelta(seconds=c.sequence & 0xFFFF),
            "_transaction": c.sequence,
            "_position": c.sequence if position is None else position,
            "_unchanged": bits if c.unsent else None,
            "id": c.id,
            "note": c.note,
            "_before": c.before,
            **dict(c.more),
        }
        for c in changes
    ]
    return pa.Table.from_pylist(rows, schema=change_schema(schema))


def op_counts(changes: Sequence[Change]) -> OpCounts:
    """How many there are of each operation."""
    return OpCounts(*(sum(c.op is op for c in changes) for op in COUNTED))
