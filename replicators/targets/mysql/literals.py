"""Rows as the text of INSERT statements, column by column in Arrow: MySQL has no binary load that
every server allows (LOAD DATA LOCAL is off by default)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.targets.mysql.errors import Refused

_TEXT = pa.large_string()
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


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
        return _around("x'", _digits(values), "'")
    if pa.types.is_list(kind):
        return _quoted(_lists(values, name))
    if pa.types.is_floating(kind) and not pc.all(pc.fill_null(pc.is_finite(values), True)).as_py():
        raise Refused(f"column {name}: MySQL has no NaN and no infinity")
    return _quoted(_text(values, kind))


def _text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A value's text. Numbers are quoted, so that the server reads every digit of a decimal and
    rounds a floating-point number once."""
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us"))
    return values.cast(_TEXT)


def _around(before: str, values: pa.Array, after: str) -> pa.Array:
    parts = (pa.scalar(before, _TEXT), values, pa.scalar(after, _TEXT), pa.scalar("", _TEXT))
    return pc.binary_join_element_wise(*parts)


def _quoted(values: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(values, "\\", "\\\\")
    return _around("'", pc.replace_substring(escaped, "'", "\\'"), "'")


def _digits(values: pa.Array) -> pa.Array:
    """Bytes as hexadecimal digits."""
    plain = pc.fill_null(values, b"").cast(pa.large_binary())
    _, ends, body = plain.buffers()
    offsets = np.frombuffer(ends, np.int64, len(plain) + 1, offset=8 * plain.offset)
    low, high = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(body, np.uint8)[low:high] if body is not None else _HEX[:0]
    shown = np.empty((len(data), 2), np.uint8)
    shown[:, 0], shown[:, 1] = _HEX[data >> 4], _HEX[data & 15]
    made = pa.Array.from_buffers(
        _TEXT, len(plain), [None, pa.py_buffer((offsets - low) * 2), pa.py_buffer(shown)]
    )
    return pc.if_else(values.is_valid(), made, pa.scalar(None, _TEXT))


def _lists(values: pa.Array, name: str) -> pa.Array:
    """Lists as JSON."""
    items = values.flatten()
    kind = items.type
    if pa.types.is_boolean(kind):
        texts = pc.if_else(items, "true", "false").cast(_TEXT)
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        texts = items.cast(_TEXT)
    elif pa.types.is_floating(kind):
        plain = items.cast(_TEXT)
        texts = pc.if_else(pc.is_finite(items), plain, _around('"', plain, '"'))
    elif pa.types.is_binary(kind):
        texts = _around('"', _digits(items), '"')
    else:
        texts = _around('"', _escaped(_text(items, kind)), '"')
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    ends = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    plain = pc.fill_null(texts, "null").cast(pa.string())
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), plain)
    made = _around("[", pc.binary_join(lists, ", ").cast(_TEXT), "]")
    return pc.if_else(values.is_valid(), made, pa.scalar(None, _TEXT))


def _escaped(texts: pa.Array) -> pa.Array:
    """Text inside a JSON string."""
    made = pc.replace_substring(texts, "\\", "\\\\")
    made = pc.replace_substring(made, '"', '\\"')
    for code in range(32):
        if pc.any(pc.match_substring(made, chr(code))).as_py():
            made = pc.replace_substring(made, chr(code), f"\\u{code:04x}")
    return made
