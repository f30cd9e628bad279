"""JSON text of Arrow values. Arrow's string kernels build it column by column, never row by row in
Python.

Numbers: integers and finite floats. Strings: text, dates, times, bytes (base64), NaN and the
infinities. Decimals are strings, or with `numbers` numbers with all their digits. JSON documents
are strings, or with `documents` documents as their source wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
)

TEXT = pa.large_string()
NULL = pa.scalar("null", TEXT)
NOTHING = pa.scalar("", TEXT)
Mask = np.ndarray[Any, np.dtype[np.bool_]]
_CONTROL = [(chr(code), json.dumps(chr(code))[1:-1]) for code in range(32)]
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_NUMBER = re.compile(r"(?:numeric|decimal)\b")
"""The native types whose values the neutral types carry as text, because they have no bounds."""


def column_value(
    array: pa.Array, column: Column, *, numbers: bool = True, documents: bool = True
) -> pa.Array:
    """JSON text of a column's values, as `value`. With `numbers`, a number that is carried as text
    is a number again."""
    match column.type:
        case String() if numbers and _NUMBER.match(column.native):
            text = pc.cast(array, TEXT)
            is_number = pc.match_substring_regex(text, r"^-?[0-9]+(\.[0-9]+)?$")
            return pc.if_else(is_number, text, quoted(escaped(text)))
        case Array(of=of):
            item = replace(column, type=of, native=column.native.removesuffix("[]"))
            items = column_value(array.flatten(), item, numbers=numbers, documents=documents)
            return _lists(array, items)
    return value(array, column.type, numbers=numbers, documents=documents)


def value(
    array: pa.Array, kind: LogicalType, *, numbers: bool = False, documents: bool = False
) -> pa.Array:
    """JSON text of each value of a neutral type. A NULL value gives NULL."""
    match kind:
        case Boolean():
            return pc.cast(array, TEXT)
        case Int():
            return _integers(array)
        case Float():
            return _floats(array)
        case Decimal(scale=scale):
            text = _decimals(array, scale)
            return text if numbers else quoted(text)
        case Bytes():
            return quoted(_base64(array))
        case Date() | Time():
            return quoted(pc.cast(array, TEXT))
        case Timestamp(zone=zone):
            # As a wall clock's time in UTC: Arrow takes 30 times longer with a zone.
            text = pc.cast(pc.cast(array, pa.timestamp("us")), TEXT)
            text = pc.replace_substring(text, " ", "T", max_replacements=1)
            return concat('"', text, 'Z"' if zone else '"')
        case Array(of=of):
            items = value(array.flatten(), of, numbers=numbers, documents=documents)
            return _lists(array, items)
        case Json() if documents:
            return pc.cast(array, TEXT)
    return quoted(escaped(pc.cast(array, TEXT)))


def concat(*pieces: Any) -> pa.Array:
    """The pieces of each row, joined. A text is the same in every row; NULL gives NULL."""
    whole = [pa.scalar(p, TEXT) if isinstance(p, str) else p for p in pieces]
    return pc.binary_join_element_wise(*whole, NOTHING)


def field_name(name: str, *, is_first: bool = False) -> str:
    """The begin of a field, with a comma before it where it is not the first."""
    return ("" if is_first else ",") + json.dumps(name, ensure_ascii=False) + ":"


def or_null(text: pa.Array) -> pa.Array:
    """The text, and `null` for NULL."""
    return pc.coalesce(text, NULL) if text.null_count else text


def quoted(text: pa.Array) -> pa.Array:
    """The text in quotes."""
    return concat('"', text, '"')


def object_of(
    fields: Sequence[tuple[str, pa.Array]], unsent: Mapping[str, Mask], rows: int
) -> pa.Array:
    """A JSON object for each row, of fields whose JSON text is given. Unsent values are left
    out."""
    ordered = sorted(fields, key=lambda f: f[0] in unsent)  # one that is always sent goes first
    pieces: list[Any] = []
    for i, (field, text) in enumerate(ordered):
        head = field_name(field, is_first=i == 0 and field not in unsent)
        if field in unsent:
            whole = concat(head, or_null(text))
            pieces.append(pc.if_else(pa.array(unsent[field]), NOTHING, whole))
        else:
            pieces += [head, or_null(text)]
    if not pieces:
        return pa.repeat(pa.scalar("{}", TEXT), rows)
    inner = concat("", *pieces)
    if ordered[0][0] in unsent:
        inner = pc.replace_substring_regex(inner, "^,", "")
    return concat("{", inner, "}")


def escaped(text: pa.Array) -> pa.Array:
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
    sign = pc.if_else(pc.starts_with(digits, "-"), pa.scalar("-", TEXT), NOTHING)
    digits = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    head = pc.utf8_slice_codeunits(digits, 0, -scale)
    tail = pc.utf8_slice_codeunits(digits, -scale)
    return concat(sign, head, ".", tail)


def _lists(array: pa.Array, items: pa.Array) -> pa.Array:
    elements = or_null(items).cast(pa.string())
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), elements), ",")
    text = concat("[", joined.cast(TEXT), "]")
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
