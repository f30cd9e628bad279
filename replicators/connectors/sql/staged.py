"""The files of a batch or a snapshot, read as the rows of a staging table: plain columns in the
types that the target's client wants. Arrow only; a few thousand rows are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from replicators.connectors import files
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.sql.relation import relation
from replicators.connectors.target import FoldedBatch

ROWS_AT_ONCE = 1 << 16
_UNSENT, _ORIGIN, _SEQUENCE = "_unsent", "_origin", "_sequence"
_COMMITTED = "_committed_at"


@dataclass(frozen=True, slots=True)
class Value:
    """Where a staged column's values come from: the column `name` of the files; with `bit` 0 or
    more, this bit of `name`'s bytes; with `part`, this field of the struct `name`; with `is_set`,
    whether the struct `name` has a value."""

    name: str
    bit: int = -1
    part: str = ""
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Parquet files, and how a staging table's columns come from theirs. It can be pickled, so a
    client may read its files in tasks (`replace(staged, paths=...)` for a part of them)."""

    columns: tuple[Column, ...]
    arrow: pa.Schema
    paths: tuple[str, ...]
    values: tuple[Value, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the files hold exactly these columns. Then a client may load them as they are, if
        their Arrow types are those of `arrow`."""
        return all(v == Value(f.name) for v, f in zip(self.values, self.arrow, strict=True))

    def read(self, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """The rows of all files, with the schema `arrow`."""
        for path in self.paths:
            yield from self.read_file(path, rows_at_once)

    def read_file(self, path: str, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """The rows of one file, row group by row group."""
        wanted = sorted({v.name for v in self.values})
        with files.open_file(path) as source:
            parquet = pq.ParquetFile(source)
            known = [n for n in wanted if n in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(rows_at_once, columns=known):
                yield self._staged(batch)

    def _staged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            _fitted(_values(batch, value), field.type)
            for value, field in zip(self.values, self.arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


def staged_batch(batch: FoldedBatch, arrow: Callable[[Column], pa.DataType]) -> StagedFiles:
    """A folded batch as its staged relation (`relation.relation`)."""
    shown = relation(batch)
    places = {c.name: at for at, c in enumerate(batch.schema.columns)}
    found: dict[str, Value] = {c.name: Value(c.name) for c in (*shown.own, *shown.more)}
    if shown.rank:
        found[shown.rank] = Value(_SEQUENCE)
    if shown.committed:
        found[shown.committed] = Value(_COMMITTED)
    if shown.delete:
        found[shown.delete] = Value("_delete")
    found |= {flag: Value(_UNSENT, bit=places[name]) for name, flag in shown.unsent}
    if shown.moved:
        found[shown.moved] = Value(_ORIGIN, is_set=True)
    found |= {name: Value(_ORIGIN, part=key) for key, name in shown.origins}
    return _staged(shown.columns, batch.paths, found, arrow)


def staged_snapshot(
    schema: TableSchema, paths: Sequence[str], arrow: Callable[[Column], pa.DataType]
) -> StagedFiles:
    """Files with whole rows of `schema`, as the tasks of a snapshot wrote them."""
    columns = schema.supported
    return _staged(columns, tuple(paths), {c.name: Value(c.name) for c in columns}, arrow)


def _staged(
    columns: tuple[Column, ...],
    paths: tuple[str, ...],
    values: dict[str, Value],
    arrow: Callable[[Column], pa.DataType],
) -> StagedFiles:
    fields = pa.schema([pa.field(c.name, arrow(c)) for c in columns])
    return StagedFiles(columns, fields, paths, tuple(values[c.name] for c in columns))


def _values(batch: pa.RecordBatch, value: Value) -> pa.Array:
    """One staged column's values; NULL (for a flag: false) where the file lacks the column."""
    at = batch.schema.get_field_index(value.name)
    is_flag = value.bit >= 0 or value.is_set
    if at < 0:
        return pa.repeat(pa.scalar(False if is_flag else None), batch.num_rows)
    column = batch.column(at)
    if value.bit >= 0:
        return _bit(column, value.bit)
    if value.is_set:
        return column.is_valid()
    return _field(column, value.part) if value.part else column


def _field(column: pa.StructArray, name: str) -> pa.Array:
    """A field of a struct; NULL where the struct is NULL."""
    return column.flatten()[column.type.get_field_index(name)]


def _bit(column: pa.Array, bit: int) -> pa.Array:
    """Whether the bit is set in each value's bytes; false for NULL and for too few bytes."""
    if pa.types.is_null(column.type) or not len(column):
        return pa.array(np.zeros(len(column), bool))
    _, ends, data = column.buffers()
    offsets = np.frombuffer(ends, np.int32, len(column) + 1, offset=4 * column.offset)
    places = offsets[:-1].astype(np.int64) + bit // 8
    has = column.is_valid().to_numpy(zero_copy_only=False) & (places < offsets[1:])
    found = np.zeros(len(column), bool)
    if has.any():
        held = np.frombuffer(data, np.uint8)[places[has]]
        found[has] = (held >> (bit % 8)) & 1
    return pa.array(found)


def _fitted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    return pa.nulls(len(values), kind) if pa.types.is_null(values.type) else pc.cast(values, kind)
