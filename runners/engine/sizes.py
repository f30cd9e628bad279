"""Handles values that the path behind decoding, or the target, can't hold. They become NULL and are
marked, as unsupported values are (`changes.FAULT_FIELDS`).

The path can't hold rows that are too large: the JVM's heap has each of them several times. For rows
without such values, only the total size is checked. A target may lack texts with a NUL character.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.unsupported import Fault, unsupported_values
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError

CODE = "source:value-too-large"
UNSUPPORTED = "source:value-unsupported"
REASON = "its row has "
NUL_REASON = "a text has a NUL character, which the target can't hold"
_Lengths = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What can be held of a row: at most `row_bytes` (0: any number), and NUL characters in texts
    unless `is_without_nul`."""

    row_bytes: int = 0
    is_without_nul: bool = False

    def are_kept(self, size: int) -> bool:
        """Whether rows of this size, in bytes, keep the limits whatever is in them."""
        return not self.is_without_nul and (not self.row_bytes or size <= self.row_bytes)

    def held(self, rows: pa.Table, schema: TableSchema) -> pa.Table:
        """The rows of a change file or a snapshot, with what can't be held marked (`of_limit`,
        `without_nul`)."""
        found = of_limit(rows, schema, self.row_bytes or rows.nbytes)
        return without_nul(found, schema) if self.is_without_nul else found

    def refuse(self, rows: pa.Table, schema: TableSchema) -> None:
        """Raise the error of the first value that can't be held. For tables whose rows can't be
        quarantined."""
        found = self.held(rows, schema)
        if "_fault_reason" in found.column_names:
            why = str(found.column("_fault_reason").drop_null()[0])
            column, _, reason = why.partition(": ")
            code = CODE if is_of_size(reason) else UNSUPPORTED
            reason = reason.partition(";")[0]
            raise ReplicationError(code, table=schema.id, column=column, reason=reason)


NO_LIMITS = Limits()


def without_nul(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """The rows without texts that have a NUL character. `source:value-unsupported` where the key
    has one, also that of a before image: a row can't be quarantined without its key."""
    found: list[Fault] = []
    for place, column in enumerate(schema.columns):
        bad = _with_nul(rows.column(column.name))
        if not len(bad):
            continue
        if column.name in schema.key or not schema.key:
            raise _unfit(schema, column.name)
        found += [(row, place, NUL_REASON) for row in bad.tolist()]
        at = rows.schema.get_field_index(column.name)
        blank = _without(rows.column(column.name), bad.tolist())
        rows = rows.set_column(at, rows.schema.field(at), blank)
    rows = _without_old_nul(rows, schema)
    return _marked(rows, found, schema) if found else rows


def _without_old_nul(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """The rows, with such texts taken out of before images: only the key of these is needed."""
    if "_before" not in rows.column_names:
        return rows
    before = rows.column("_before").combine_chunks()
    names = [f.name for f in before.type]
    fields = dict(zip(names, before.flatten(), strict=True))
    bad = {name: faulty for name, f in fields.items() if len(faulty := _with_nul(f))}
    if not bad:
        return rows
    for name, faulty in bad.items():
        if name in schema.key or not schema.key:
            raise _unfit(schema, name)
        fields[name] = _without(fields[name], faulty.tolist())
    made = pa.StructArray.from_arrays(
        [fields[n] for n in names], fields=list(before.type), mask=before.is_null()
    )
    at = rows.schema.get_field_index("_before")
    return rows.set_column(at, rows.schema.field(at), made)


def _unfit(schema: TableSchema, column: str) -> ReplicationError:
    return ReplicationError(UNSUPPORTED, table=schema.id, column=column, reason=NUL_REASON)


def _with_nul(column: pa.ChunkedArray | pa.Array) -> _Lengths:
    """The rows whose text, or a text of whose list, has a NUL character."""
    nothing = np.empty(0, np.int64)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_list(column.type):
        inner = _with_nul(column.flatten())
        if not len(inner):
            return nothing
        of_row = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
        return np.unique(of_row[inner])
    body = column.buffers()[2] if pa.types.is_string(column.type) else None
    if body is None or not len(body) or np.frombuffer(body, np.uint8).min():
        return nothing
    has = pc.match_substring(column, "\0").fill_null(False)
    return np.flatnonzero(np.asarray(has))


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
