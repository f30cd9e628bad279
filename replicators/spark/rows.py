"""Turns the rows of a change file into rows of the data frame. Works by column, without loops over
rows; opens no file. `docs/spark-source.md` says what the columns mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.spark import errors
from replicators.spark.types import Names

OPERATIONS = ("insert", "update", "delete", "truncate")
"""The names of the numbers in the files' column `_op`."""
INSERT, UPDATE, DELETE, TRUNCATE = range(4)
_BEFORE = "_before"
_META = frozenset(
    {
        "_sequence", "_op", "_committed_at", "_transaction", "_position", "_unchanged", _BEFORE,
        "_faulty", "_fault_reason",
    }
)  # fmt: skip
_WORDS = pa.list_(pa.string())
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Reading:
    """Which rows of a file are wanted: after `after`, up to `upto`, of the present copy
    (`position`), without the operations `skipped`. `schema` is the data frame's."""

    table: str
    names: Names
    schema: pa.Schema
    after: int
    upto: int
    position: int
    skipped: tuple[str, ...] = ()


class _Marks:
    """Bits of each row, one for each column: few different patterns, and each row's pattern."""

    def __init__(self, bits: pa.Array) -> None:
        coded = bits.dictionary_encode()
        self.patterns = [*coded.dictionary.to_pylist(), b""]
        self.codes = coded.indices.fill_null(len(self.patterns) - 1).to_numpy()

    def has(self, code: int, column: int) -> bool:
        pattern = self.patterns[code]
        return column >> 3 < len(pattern) and bool(pattern[column >> 3] >> (column & 7) & 1)

    def of(self, column: int) -> Mask:
        """Whether a row has the bit of that column."""
        table = np.array([self.has(code, column) for code in range(len(self.patterns))])
        found: Mask = table[self.codes]
        return found

    def named(self, code: int, image: Sequence[str]) -> list[str]:
        return [name for i, name in enumerate(image) if self.has(code, i)]


def frame_rows(changes: pa.Table, key: Sequence[str], reading: Reading) -> pa.Table:
    """The wanted rows of a change file in the data frame's schema. `key`: the columns that identify
    a row. `ChangesError` where a value does not fit."""
    return _Rows(_wanted(changes, reading), key, reading).table()


def _wanted(changes: pa.Table, reading: Reading) -> pa.Table:
    sequence = changes.column("_sequence")
    keep = pc.and_(pc.greater(sequence, reading.after), pc.less_equal(sequence, reading.upto))
    keep = pc.and_(keep, pc.greater_equal(changes.column("_position"), reading.position))
    if reading.skipped:
        skipped = pa.array([OPERATIONS.index(w) for w in reading.skipped], pa.int8())
        keep = pc.and_(keep, pc.invert(pc.is_in(changes.column("_op"), value_set=skipped)))
    return changes.filter(keep)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


class _Rows:
    """The rows of one file."""

    def __init__(self, changes: pa.Table, key: Sequence[str], reading: Reading) -> None:
        self._changes, self._reading, self._key = changes, reading, frozenset(key)
        self._image = [n for n in changes.column_names if n not in _META]
        self._op = changes.column("_op").to_numpy()
        self._before: pa.StructArray | None = None
        self._had: Mask = np.zeros(changes.num_rows, bool)
        self._kept: frozenset[str] = frozenset()
        if _BEFORE in changes.column_names:
            self._before = _whole(changes.column(_BEFORE))
            self._had = self._before.is_valid().to_numpy(zero_copy_only=False)
            self._kept = frozenset(f.name for f in self._before.type)
        self._unsent = _Marks(_whole(changes.column("_unchanged")))

    def table(self) -> pa.Table:
        names = self._reading.names
        made: dict[str, Callable[[pa.Field], pa.Array]] = {
            names.operation: lambda _: pa.array(np.array(OPERATIONS, object)[self._op]),
            names.sequence: lambda _: self._changes.column("_sequence"),
            names.committed_at: lambda _: self._changes.column("_committed_at"),
            names.transaction: lambda _: self._changes.column("_transaction"),
            names.unsent: lambda _: self._unsent_names(),
            names.unsupported: lambda _: self._unsupported_names(),
            names.before: lambda field: self._old(field.type),
        }
        arrays = [
            self._fitted(made.get(f.name, self._value)(f), f.type, f.name)
            for f in self._reading.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self._reading.schema)

    def _fitted(self, array: Any, kind: pa.DataType, name: str) -> Any:
        if array.type == kind:
            return array
        try:
            return array.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise errors.does_not_fit(
                self._reading.table, name, str(array.type), str(kind)
            ) from None

    def _value(self, field: pa.Field) -> Any:
        """A column of the table: the row after the change, for a delete the old row. NULL where the
        file does not have the column. A value that was not sent comes from the old row, if that is
        known."""
        if field.name not in self._image:
            return pa.nulls(self._changes.num_rows, field.type)
        after = self._changes.column(field.name)
        if field.name not in self._kept:
            return after
        is_unsent = self._unsent.of(self._image.index(field.name))
        takes_old = self._had & ((self._op == DELETE) | ((self._op == UPDATE) & is_unsent))
        if not takes_old.any():
            return after
        old = pc.struct_field(self._before, [field.name])
        return pc.if_else(pa.array(takes_old), old, after)

    def _old(self, kind: pa.StructType) -> pa.Array:
        """The old row, as far as it is known."""
        if self._before is None or not self._had.any():
            return pa.nulls(self._changes.num_rows, kind)
        fields = list(kind)
        children = [
            self._fitted(pc.struct_field(self._before, [f.name]), f.type, f.name)
            if f.name in self._kept
            else pa.nulls(self._changes.num_rows, f.type)
            for f in fields
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(~self._had))

    def _unsent_names(self) -> pa.Array:
        """The columns whose value is not known in the row; NULL for none. There are few kinds of
        rows, so the names are made once for each kind."""
        updated = (self._op == UPDATE) & self._had
        gone = np.where(self._had, 2, 3)
        form = np.where(self._op == DELETE, gone, updated.astype(np.int64))
        form = np.where(self._op == TRUNCATE, 4, form)
        kinds, place = np.unique(self._unsent.codes * 5 + form, return_inverse=True)
        words = [self._missing(*divmod(int(kind), 5)) or None for kind in kinds]
        return pa.array(words, _WORDS).take(pa.array(place.astype(np.int64)))

    def _missing(self, code: int, form: int) -> list[str]:
        if form == 4:
            return []
        if form in {2, 3}:
            known = self._kept if form == 2 else self._key
            return [name for name in self._image if name not in known]
        missing = self._unsent.named(code, self._image)
        return [name for name in missing if form == 0 or name not in self._kept]

    def _unsupported_names(self) -> pa.Array:
        """The columns whose value could not be carried; NULL for none."""
        if "_faulty" not in self._changes.column_names:
            return pa.nulls(self._changes.num_rows, _WORDS)
        marks = _Marks(_whole(self._changes.column("_faulty")))
        words = [marks.named(code, self._image) or None for code in range(len(marks.patterns))]
        return pa.array(words, _WORDS).take(pa.array(marks.codes))
