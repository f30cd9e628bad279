"""Reads the current rows of a table back, by key. Each read shows one moment; two of them may show
different ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.cloud.spanner_v1.types import KeySet

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Decimal, arrow_type
from replicators.connectors.sql.client import Names
from replicators.targets.spanner import types, values
from replicators.targets.spanner.naming import encoded
from replicators.targets.spanner.params import SpannerParams
from replicators.targets.spanner.service import Service, key_set

KEYS_A_READ = 2_000
_MARKS = {Mode.SOFT_DELETE: "_is_deleted", Mode.HISTORY: "_is_current"}


@dataclass(frozen=True, slots=True)
class SpannerRows:
    """See `CurrentRows`. `key`: the table's key at the service."""

    params: SpannerParams
    names: Names
    schema: TableSchema
    mode: Mode
    key: tuple[str, ...]

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """See `CurrentRows.rows`."""
        chosen = reading.chosen(self.schema, columns)
        first = self.schema.key[0] if self.schema.key else ""
        wanted = list(dict.fromkeys([*chosen, *([first] if first else [])]))
        for rows in self._read(wanted, self._range(lower, upper)):
            kept = reading.within(rows, first, lower, upper) if first else rows
            yield from kept.select(chosen).to_batches()

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        """See `CurrentRows.rows_by_keys`."""
        chosen = reading.chosen(self.schema, columns)
        wanted = list(dict.fromkeys([*chosen, *self.schema.key]))
        found = [reading.neutral(self.schema, wanted).empty_table()]
        if self.key[: len(self.schema.key)] != self.schema.key:
            rows = pa.concat_tables([*found, *self._read(wanted, key_set(None, 0))])
            return reading.with_keys(rows, keys.select(self.schema.key)).select(chosen)
        held = pa.schema([pa.field(n, types.arrow(self.schema.column(n))) for n in self.schema.key])
        asked = keys.select(held.names).cast(held)
        for at in range(0, asked.num_rows, KEYS_A_READ):
            part = asked.slice(at, KEYS_A_READ)
            found += self._read(wanted, key_set(part, len(self.key)))
        return pa.concat_tables(found).select(chosen)

    def _range(self, lower: Any, upper: Any) -> KeySet:
        """The keys from `lower` to before `upper`; all keys where they are ordered otherwise."""
        first = self.schema.column(self.schema.key[0]) if self.schema.key else None
        is_text = first is not None and isinstance(first.type, Decimal) and not _is_number(first)
        if first is None or is_text or self.key[0] != first.name or (lower, upper) == (None, None):
            return key_set(None, 0)
        made = KeySet()
        one = KeySet.pb(made).ranges.add()
        for tag, limit in ((b"\x0a", lower), (b"\x22" if upper is not None else b"\x1a", upper)):
            if limit is None:
                one.MergeFromString(values.field(tag, b""))
            else:
                value = reading.scalar(limit, arrow_type(first.type)).cast(types.arrow(first))
                row = pa.table({"value": pa.array([value.as_py()], value.type)})
                one.MergeFromString(values.joined(values.lists(row, tag=tag)))
        return made

    def _read(self, columns: Sequence[str], keys: KeySet) -> Iterator[pa.Table]:
        """The current rows with these keys, in the neutral types."""
        mark = _MARKS.get(self.mode, "")
        shown = [*columns, mark] if mark else list(columns)
        kinds = [types.arrow(self.schema.column(n)) for n in columns] + [pa.bool_()] * bool(mark)
        table, wanted = encoded(self.names[-1]), reading.neutral(self.schema, columns)
        with closing(Service(self.params)) as service:
            for rows in service.stream(table, [encoded(n) for n in shown], keys, kinds):
                rows = rows.rename_columns(shown)
                if mark:
                    is_set = pc.fill_null(rows.column(mark), False)
                    keep = is_set if self.mode is Mode.HISTORY else pc.invert(is_set)
                    rows = rows.filter(keep)
                yield reading.fitted(rows.select(list(columns)), wanted)


def _is_number(column: Any) -> bool:
    return types.native(column) == "NUMERIC"
