"""Writes records as JSON lines. Arrow's string kernels build the lines column by column, never row
by row in Python.

Numbers: integers and finite floats. Strings: decimals, text, dates, times, bytes (base64), and JSON
documents as their source wrote them. `docs/files.md` has the table.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
)
from replicators.targets.files.records import Mask, Records

TEXT = pa.large_string()
_NULL = pa.scalar("null", TEXT)
_NOTHING = pa.scalar("", TEXT)
_CONTROL = [(chr(code), json.dumps(chr(code))[1:-1]) for code in range(32)]
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_META: tuple[tuple[str, LogicalType], ...] = (
    ("_sequence", Int(64)),
    ("_operation", String()),
    ("_committed_at", Timestamp(zone=True)),
    ("_transaction", Int(64)),
    ("_schema", Int(32)),
    ("_unsent", Array(String())),
)


def lines(records: Records, schema: TableSchema) -> pa.Buffer:
    """One line of UTF-8 for each record."""
    rows = records.rows
    pieces: list[Any] = []
    for i, (name, kind) in enumerate(_META):
        pieces += [_name(name, is_first=i == 0), _or_null(value(rows.column(name), kind))]
    for name in ("key", "old_key", "after", "before"):
        if name in rows.schema.names:
            unsent = records.unsent if name == "after" else {}
            pieces += [_name(name), _object(rows.column(name), schema, unsent)]
    text = _joined("{", *pieces, "}\n")
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset :]
    return text.buffers()[2].slice(offsets[0], offsets[len(text)] - offsets[0])


def value(array: pa.Array, kind: LogicalType) -> pa.Array:
    """JSON text of each value of a neutral type. A NULL value gives NULL."""
    match kind:
        case Boolean():
            return pc.cast(array, TEXT)
        case Int():
            return _integers(array)
        case Float():
            return _floats(array)
        case Decimal(scale=scale):
            return _quoted(_decimals(array, scale))
        case Bytes():
            return _quoted(_base64(array))
        case Date() | Time():
            return _quoted(pc.cast(array, TEXT))
        case Timestamp():
            text = pc.cast(array, TEXT)
            return _quoted(pc.replace_substring(text, " ", "T", max_replacements=1))
        case Array(of=of):
            return _lists(array, of)
    return _quoted(_escaped(pc.cast(array, TEXT)))


def _joined(*pieces: Any) -> pa.Array:
    whole = [pa.scalar(p, TEXT) if isinstance(p, str) else p for p in pieces]
    return pc.binary_join_element_wise(*whole, _NOTHING)


def _name(name: str, *, is_first: bool = False) -> str:
    return ("" if is_first else ",") + json.dumps(name, ensure_ascii=False) + ":"


def _or_null(text: pa.Array) -> pa.Array:
    return pc.coalesce(text, _NULL) if text.null_count else text


def _quoted(text: pa.Array) -> pa.Array:
    return _joined('"', text, '"')


def _object(rows: pa.StructArray, schema: TableSchema, unsent: dict[str, Mask]) -> pa.Array:
    """A JSON object for each row; a null row gives null. Unsent values are left out."""
    fields = [f.name for f in rows.type]
    fields.sort(key=lambda name: name in unsent)  # a column that is always sent goes first
    pieces: list[Any] = []
    for i, name in enumerate(fields):
        text = _or_null(value(pc.struct_field(rows, [name]), schema.column(name).type))
        head = _name(name, is_first=i == 0 and name not in unsent)
        if name in unsent:
            pieces.append(pc.if_else(pa.array(unsent[name]), _NOTHING, _joined(head, text)))
        else:
            pieces += [head, text]
    inner = _joined("", *pieces)
    if fields and fields[0] in unsent:
        inner = pc.replace_substring_regex(inner, "^,", "")
    text = _joined("{", inner, "}")
    return pc.if_else(rows.is_valid(), text, _NULL) if rows.null_count else text


def _escaped(text: pa.Array) -> pa.Array:
    """Escape quotes, backslashes and control characters, as JSON strings require."""
    for mark in ("\\", '"'):
        text = pc.replace_substring(text, mark, "\\" + mark)
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for character, escape in _CONTROL:
            text = pc.replace_substring(text, character, escape)
    return text


def _integers(array: pa.Array) -> pa.Array:
    return pc.cast(array, TEXT)


def _floats(array: pa.Array) -> pa.Array:
    text = pc.cast(array, TEXT)
    text = pc.if_else(pc.equal(text, "-0"), pa.scalar("-0.0", TEXT), text)
    if pc.all(pc.is_finite(array)).as_py() is not False:
        return text
    for raw, named in (("-inf", '"-Infinity"'), ("inf", '"Infinity"'), ("nan", '"NaN"')):
        text = pc.if_else(pc.equal(text, raw), pa.scalar(named, TEXT), text)
    return text


def _decimals(array: pa.Array, scale: int) -> pa.Array:
    """Decimal digits with `scale` of them after the point, never with an exponent."""
    text = pc.cast(array, TEXT)
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return text
    whole = pa.Array.from_buffers(
        pa.decimal128(array.type.precision, 0), len(array), array.buffers(), offset=array.offset
    )
    digits = pc.cast(whole, TEXT)
    sign = pc.if_else(pc.starts_with(digits, "-"), pa.scalar("-", TEXT), _NOTHING)
    digits = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    head = pc.utf8_slice_codeunits(digits, 0, -scale)
    tail = pc.utf8_slice_codeunits(digits, -scale)
    return _joined(sign, head, ".", tail)


def _lists(array: pa.Array, of: LogicalType) -> pa.Array:
    elements = _or_null(value(array.flatten(), of)).cast(pa.string())
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), elements), ",")
    text = _joined("[", joined.cast(TEXT), "]")
    return pc.if_else(array.is_valid(), text, pa.scalar(None, TEXT)) if array.null_count else text


def _base64(array: pa.Array) -> pa.Array:
    """Each value in base64. All bytes are encoded at once, in groups of three."""
    plain = pc.cast(array, pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(plain), 0).to_numpy(zero_copy_only=False)
    lengths = lengths.astype(np.int64)
    groups = (lengths + 2) // 3
    ends = np.cumsum(groups)
    offsets = np.concatenate(([0], ends * 4))
    source = _bytes_of(plain)
    threes = np.zeros(int(ends[-1]) * 3 if len(ends) else 0, np.uint8)
    shift = np.concatenate(([0], ends[:-1] * 3)) - np.concatenate(([0], np.cumsum(lengths)[:-1]))
    if len(source):
        threes[np.arange(len(source)) + np.repeat(shift, lengths)] = source
    wide = threes.reshape(-1, 3).astype(np.uint32)
    number = (wide[:, 0] << 16) | (wide[:, 1] << 8) | wide[:, 2]
    chars = np.empty((len(number), 4), np.uint8)
    for i, bits in enumerate((18, 12, 6, 0)):
        chars[:, i] = _ALPHABET[(number >> bits) & 63]
    flat = chars.reshape(-1)
    lacking = groups * 3 - lengths
    flat[offsets[1:][lacking >= 1] - 1] = ord("=")
    flat[offsets[1:][lacking == 2] - 2] = ord("=")
    made = pa.LargeStringArray.from_buffers(
        len(array), pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(flat)
    )
    return pc.if_else(array.is_valid(), made, pa.scalar(None, TEXT)) if array.null_count else made


def _bytes_of(array: pa.Array) -> np.ndarray[Any, Any]:
    """The bytes of all values, one after the other."""
    whole = pc.coalesce(array, pa.scalar(b"", pa.large_binary())) if array.null_count else array
    if whole.buffers()[2] is None:
        return np.zeros(0, np.uint8)
    offsets = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset :]
    return np.frombuffer(whole.buffers()[2], np.uint8)[offsets[0] : offsets[len(whole)]]
