"""Rows between Arrow and the protocol. What is written is made as the protocol's bytes, column by
column by Arrow's kernels: Python would need a call for each value."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow import json_text
from replicators.connectors.model.types import Bytes, Decimal, Timestamp

WIRE = pa.large_binary()
NULL = pa.scalar(b"\x08\x00", WIRE)
_NOTHING = pa.scalar(b"", WIRE)
_TRUE, _FALSE = pa.scalar(b"\x20\x01", WIRE), pa.scalar(b"\x20\x00", WIRE)
_NAMED = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
# Tags: the field's number and its kind. Of a Value: text 3, list 6; of a list: its values 1.
_TEXT, _LIST, _ITEM = b"\x1a", b"\x32", b"\x0a"


def lists(rows: pa.Table, *, tag: bytes) -> pa.LargeBinaryArray:
    """Each row as a ListValue, in a field of this tag. Its bytes may be joined to a message."""
    columns = [_tagged(_ITEM, _values(c.combine_chunks())) for c in rows.columns]
    joined = _joined(*columns) if columns else pa.array([b""] * rows.num_rows, WIRE)
    return _tagged(tag, joined)


def joined(parts: pa.LargeBinaryArray) -> bytes:
    """All of them, one after the other."""
    if not len(parts):
        return b""
    _, ends, data = parts.buffers()
    offsets = np.frombuffer(ends, np.int64)[parts.offset : parts.offset + len(parts) + 1]
    return bytes(memoryview(data)[offsets[0] : offsets[-1]]) if data is not None else b""


def field(tag: bytes, content: bytes) -> bytes:
    """A field of a message."""
    return tag + _varint(len(content)) + content


def _joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _tagged(tag: bytes, content: pa.Array) -> pa.Array:
    """Each content as a field: tag, length, bytes. NULL stays NULL."""
    lengths = pc.fill_null(pc.binary_length(content), 0).to_numpy(zero_copy_only=False)
    known, places = np.unique(lengths, return_inverse=True)
    heads = pa.array([tag + _varint(int(n)) for n in known], WIRE).take(pa.array(places))
    return _joined(heads, content)


def _values(array: pa.Array) -> pa.Array:
    """Each value as a Value."""
    kind = array.type
    if pa.types.is_boolean(kind):
        found = pc.if_else(array, _TRUE, _FALSE)
    elif pa.types.is_floating(kind):
        found = _floats(array)
    elif pa.types.is_list(kind):
        found = _arrays(array)
    else:
        found = _tagged(_TEXT, _texts(array).cast(WIRE))
    return pc.coalesce(found, NULL) if array.null_count else found


def _texts(array: pa.Array) -> pa.Array:
    """The text by which the protocol has a value."""
    kind = array.type
    if pa.types.is_decimal(kind):
        return json_text.value(array, Decimal(kind.precision, kind.scale), numbers=True)
    if pa.types.is_timestamp(kind):
        return _bare(json_text.value(array, Timestamp(6, zone=True)))
    if pa.types.is_binary(kind):
        return _bare(json_text.value(array, Bytes()))
    return pc.cast(array, pa.large_string())


def _bare(quoted: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(quoted, 1, -1)


def _floats(array: pa.Array) -> pa.Array:
    plain = pc.fill_null(array, 0).cast(pa.float64()).to_numpy(zero_copy_only=False)
    whole = np.empty((len(plain), 9), np.uint8)
    whole[:, 0] = 0x11
    whole[:, 1:] = plain.astype("<f8").view(np.uint8).reshape(-1, 8)
    made = pa.Array.from_buffers(pa.binary(9), len(plain), [None, pa.py_buffer(whole.tobytes())])
    found = made.cast(WIRE)
    if not np.isfinite(plain).all():
        texts = [_NAMED.get(str(v)) for v in plain]
        found = pc.coalesce(_tagged(_TEXT, pa.array(texts, WIRE)), found)
    if array.null_count:
        found = pc.if_else(array.is_valid(), found, pa.scalar(None, WIRE))
    return found


def _arrays(array: pa.Array) -> pa.Array:
    items = _tagged(_ITEM, _values(array.flatten())).cast(pa.binary())
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    ends = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    whole = pc.binary_join(pa.ListArray.from_arrays(ends, items), b"").cast(WIRE)
    found = _tagged(_LIST, whole)
    return pc.if_else(array.is_valid(), found, pa.scalar(None, WIRE))


# What is read


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of the protocol's values."""
    return _array([_plain(v) for v in values], kind)


def _plain(value: Any) -> Any:
    which = value.WhichOneof("kind")
    if which == "string_value":
        return value.string_value
    if which == "list_value":
        return [_plain(v) for v in value.list_value.values]
    return None if which == "null_value" else getattr(value, which)


def _array(found: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        items = [item for some in found for item in some or ()]
        ends = np.cumsum([0, *(len(some or ()) for some in found)]).astype(np.int32)
        is_null = pa.array([some is None for some in found], pa.bool_())
        inner = _array(items, kind.value_type)
        return pa.ListArray.from_arrays(pa.array(ends), inner, mask=is_null)
    if pa.types.is_binary(kind):
        return pa.array([None if v is None else base64.b64decode(v) for v in found], kind)
    if pa.types.is_boolean(kind):
        return pa.array(found, kind)
    if pa.types.is_floating(kind):
        return pa.array([None if v is None else float(v) for v in found], pa.float64()).cast(kind)
    texts = pa.array(found, pa.string())
    if pa.types.is_timestamp(kind):
        bare = pc.utf8_slice_codeunits(pc.utf8_rtrim(texts, "Z"), 0, 26)
        return bare.cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return texts.cast(kind)
