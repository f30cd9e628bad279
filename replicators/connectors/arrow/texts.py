"""Values as text, column by column: hexadecimal digits, and lists as JSON. For databases that have
no other form for them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TEXT = pa.large_string()
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A value's text. Numbers are quoted, so that the server reads every digit of a decimal and
    rounds a floating-point number once."""
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us"))
    return values.cast(_TEXT)


def around(before: str, values: pa.Array, after: str) -> pa.Array:
    parts = (pa.scalar(before, _TEXT), values, pa.scalar(after, _TEXT), pa.scalar("", _TEXT))
    return pc.binary_join_element_wise(*parts)


def digits(values: pa.Array) -> pa.Array:
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


def lists(values: pa.Array) -> pa.Array:
    """Lists as JSON."""
    items = values.flatten()
    kind = items.type
    if pa.types.is_boolean(kind):
        texts = pc.if_else(items, "true", "false").cast(_TEXT)
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        texts = items.cast(_TEXT)
    elif pa.types.is_floating(kind):
        plain = items.cast(_TEXT)
        texts = pc.if_else(pc.is_finite(items), plain, around('"', plain, '"'))
    elif pa.types.is_binary(kind):
        texts = around('"', digits(items), '"')
    else:
        texts = around('"', _escaped(text(items, kind)), '"')
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    ends = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    plain = pc.fill_null(texts, "null").cast(pa.string())
    joined = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), plain)
    made = around("[", pc.binary_join(joined, ", ").cast(_TEXT), "]")
    return pc.if_else(values.is_valid(), made, pa.scalar(None, _TEXT))


def _escaped(texts: pa.Array) -> pa.Array:
    """Text inside a JSON string."""
    made = pc.replace_substring(texts, "\\", "\\\\")
    made = pc.replace_substring(made, '"', '\\"')
    for code in range(32):
        if pc.any(pc.match_substring(made, chr(code))).as_py():
            made = pc.replace_substring(made, chr(code), f"\\u{code:04x}")
    return made
