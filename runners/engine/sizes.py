"""Handles values that are larger than the path behind decoding can hold (the JVM's heap has each of
them several times). They become NULL and are marked, as unsupported values are
(`events.FAULT_FIELDS`). For rows without such values, only the total size is checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.unsupported import Fault, unsupported_values
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError

CODE = "source:value-too-large"
REASON = "its row has "
_Lengths = np.ndarray[tuple[int], np.dtype[np.int64]]


def of_limit(rows: pa.Table, schema: TableSchema, limit: int) -> pa.Table:
    """The rows of a change file or a snapshot, each with at most `limit` bytes of texts, bytes and
    lists. In a larger row the largest values become NULL, and the table gets `FAULT_FIELDS` that
    name them. `source:value-too-large` where the table has no key, by which such a row could be
    quarantined, and where the key itself is too large."""
    if rows.nbytes <= limit:
        return rows
    rows = _without_old_values(rows, schema, limit)
    lengths = {c.name: _lengths(rows.column(c.name)) for c in schema.columns}
    total = _sum(lengths.values(), rows.num_rows)
    large = np.flatnonzero(total > limit)
    if not len(large):
        return rows
    found: list[Fault] = []
    for row in large.tolist():
        for name in _to_leave_out(lengths, row, limit, schema):
            place = [c.name for c in schema.columns].index(name)
            found.append((row, place, _reason(int(total[row]), limit)))
    for place in {column for _, column, _ in found}:
        name = schema.columns[place].name
        at = rows.schema.get_field_index(name)
        blank = _without(rows.column(name), [r for r, column, _ in found if column == place])
        rows = rows.set_column(at, rows.schema.field(at), blank)
    return _marked(rows, found, schema)


def refuse(rows: pa.Table, schema: TableSchema, limit: int) -> None:
    """Raise `source:value-too-large` where a row is too large. For tables whose rows can't be
    quarantined."""
    found = of_limit(rows, schema, limit or rows.nbytes)
    if "_fault_reason" in found.column_names:
        why = str(found.column("_fault_reason").drop_null()[0])
        column, _, reason = why.partition(": ")
        raise ReplicationError(
            CODE, table=schema.id, column=column, reason=reason.partition(";")[0]
        )


def _reason(size: int, limit: int) -> str:
    return f"{REASON}{size:,} bytes, and rows of at most {limit:,} are copied"


def is_of_size(reason: str) -> bool:
    """Whether a fault's reason is that the value is too large."""
    return reason.startswith(REASON)


def _sum(lengths: Iterable[_Lengths], rows: int) -> _Lengths:
    total = np.zeros(rows, np.int64)
    for one in lengths:
        total += one
    return total


def _lengths(column: pa.ChunkedArray | pa.Array) -> _Lengths:
    """The bytes of each value of a text, of bytes or of a list. 0 for NULL, and for types of a
    fixed length."""
    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return np.asarray(pc.binary_length(column).fill_null(0)).astype(np.int64)
    if not pa.types.is_list(kind):
        return np.zeros(len(column), np.int64)
    inner = column.flatten()
    if pa.types.is_string(kind.value_type) or pa.types.is_binary(kind.value_type):
        sizes = _lengths(inner)
    else:
        sizes = np.full(len(inner), (kind.value_type.bit_width + 7) // 8, np.int64)
    of_row = np.asarray(pc.list_parent_indices(column))
    return np.bincount(of_row, sizes, len(column)).astype(np.int64)


def _to_leave_out(
    lengths: Mapping[str, _Lengths], row: int, limit: int, schema: TableSchema
) -> list[str]:
    """The row's largest values, as many as needed until the rest is small enough."""
    sizes = {name: int(of[row]) for name, of in lengths.items()}
    left, taken = sum(sizes.values()), []
    for name in sorted(sizes, key=lambda n: (n in schema.key, -sizes[n])):
        if left <= limit:
            break
        if not schema.key or name in schema.key:
            reason = _reason(sum(sizes.values()), limit)
            raise ReplicationError(CODE, table=schema.id, column=name, reason=reason)
        taken.append(name)
        left -= sizes[name]
    return taken


def _without(column: pa.ChunkedArray, rows: list[int]) -> pa.ChunkedArray:
    keep = np.ones(len(column), np.bool_)
    keep[rows] = False
    return pc.if_else(pa.array(keep), column, pa.scalar(None, column.type))


def _without_old_values(rows: pa.Table, schema: TableSchema, limit: int) -> pa.Table:
    """The rows, with too large values taken out of before images. No row is quarantined for its
    before image: only the key of that is needed. Without a key all of it is needed."""
    if "_before" not in rows.column_names:
        return rows
    before = rows.column("_before").combine_chunks()
    if before.nbytes <= limit:
        return rows
    names = [f.name for f in before.type]
    fields = dict(zip(names, before.flatten(), strict=True))
    lengths = {n: _lengths(f) for n, f in fields.items()}
    large = np.flatnonzero(_sum(lengths.values(), rows.num_rows) > limit)
    for row in large.tolist():
        for name in _to_leave_out(lengths, row, limit, schema):
            fields[name] = _without(fields[name], [row])
    if not len(large):
        return rows
    made = pa.StructArray.from_arrays(
        [fields[n] for n in names], fields=list(before.type), mask=before.is_null()
    )
    at = rows.schema.get_field_index("_before")
    return rows.set_column(at, rows.schema.field(at), made)


def _marked(rows: pa.Table, found: list[Fault], schema: TableSchema) -> pa.Table:
    """The rows with these marks added to those that they have."""
    if "_faulty" in rows.column_names:
        found = [*_known(rows, schema), *found]
        rows = rows.drop_columns([f.name for f in FAULT_FIELDS])
    reported = unsupported_values(found, rows.num_rows, schema.columns)
    for field, values in zip(FAULT_FIELDS, (reported.marks, reported.reasons), strict=True):
        rows = rows.append_column(field, values)
    return rows


def _known(rows: pa.Table, schema: TableSchema) -> list[Fault]:
    known: list[Fault] = []
    marks, reasons = (rows.column(f.name).to_pylist() for f in FAULT_FIELDS)
    for row, (bits, reported) in enumerate(zip(marks, reasons, strict=True)):
        for place, column in enumerate(schema.columns):
            if bits and bits[place >> 3] >> (place & 7) & 1:
                reason = str(reported).partition(f"{column.name}: ")[2].partition(";")[0]
                known.append((row, place, reason))
    return known
