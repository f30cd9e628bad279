"""Rows as the text of INSERT statements, column by column in Arrow: MySQL has no binary load that
every server allows (LOAD DATA LOCAL is off by default)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.texts import around, digits, lists, text
from replicators.targets.mysql.errors import Refused

_TEXT = pa.large_string()


def inserts(table: str, rows: pa.RecordBatch, most_bytes: int) -> Iterator[bytes]:
    """INSERT statements with all rows. None is longer than `most_bytes`, but for one that has a
    single row. `table` is quoted. `Refused`."""
    if not rows.num_rows:
        return
    columns = [_values(a, f.name) for a, f in zip(rows.columns, rows.schema, strict=True)]
    first, *others = columns
    first = pc.binary_join_element_wise(pa.scalar("(", _TEXT), first, pa.scalar("", _TEXT))
    joined = pc.binary_join_element_wise(first, *others, pa.scalar(",", _TEXT))
    ended = pc.binary_join_element_wise(joined, pa.scalar("),", _TEXT), pa.scalar("", _TEXT))
    _, ends, body = ended.buffers()
    offsets = np.frombuffer(ends, np.int64, len(ended) + 1, offset=8 * ended.offset)
    data = memoryview(body)
    begin = f"INSERT INTO {table} VALUES ".encode()  # noqa: S608 - quoted
    at = 0
    while at < len(ended):
        limit = offsets[at] + most_bytes - len(begin)
        upto = max(at + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        yield begin + bytes(data[int(offsets[at]) : int(offsets[upto]) - 1])
        at = upto


def _values(values: pa.Array, name: str) -> pa.Array:
    """A column's values as literals."""
    kind = values.type
    if pa.types.is_null(kind):
        return pa.array(["NULL"] * len(values), _TEXT)
    return pc.fill_null(_written(values, kind, name), "NULL")


def _written(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(_TEXT)
    if pa.types.is_integer(kind):
        return values.cast(_TEXT)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return around("x'", digits(values), "'")
    if pa.types.is_list(kind):
        return _quoted(lists(values))
    if pa.types.is_floating(kind) and not pc.all(pc.fill_null(pc.is_finite(values), True)).as_py():
        raise Refused(f"column {name}: MySQL has no NaN and no infinity")
    return _quoted(text(values, kind))


def _quoted(values: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(values, "\\", "\\\\")
    return around("'", pc.replace_substring(escaped, "'", "\\'"), "'")
