"""The current rows of a test's target, held in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class HeldRows:
    """See `CurrentRows`. `held`: all rows of the table, with the mode's columns."""

    held: pa.Table
    schema: TableSchema
    mode: Mode

    def _current(self) -> pa.Table:
        rows = self.held
        if self.mode is Mode.SOFT_DELETE:
            rows = rows.filter(pc.invert(pc.fill_null(rows.column("_is_deleted"), False)))
        if self.mode is Mode.HISTORY:
            rows = rows.filter(rows.column("_is_current"))
        names = [c.name for c in self.schema.supported]
        return reading.fitted(rows.select(names), reading.neutral(self.schema, names))

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        rows = self._current()
        if self.schema.key:
            rows = reading.within(rows, self.schema.key[0], lower, upper)
        yield from rows.select(reading.chosen(self.schema, columns)).to_batches()

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        rows = reading.with_keys(self._current(), keys)
        return rows.select(reading.chosen(self.schema, columns))
