"""Converts MySQL's binary JSON to the text that the server prints. Format: MySQL,
`sql-common/json_binary.h`.

A document is a type byte and a value. Objects and arrays hold a count, their size, and entries of
fixed size. The entries hold offsets from the object's own beginning, in 2 or (large) 4 bytes; small
values are stored in the entries themselves.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator

import pyarrow as pa

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL = range(5)
INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(5, 13)
OPAQUE = 15
NUMBERS = {INT16: "<h", UINT16: "<H", INT32: "<i", UINT32: "<I", INT64: "<q", UINT64: "<Q"}
LITERALS = {0: "null", 1: "true", 2: "false"}
DECIMAL, DATE, TIME, DATETIME, TIMESTAMP = 246, 10, 11, 12, 7
MAX_DEPTH = 100
BASE64_LINE = 76
PLAIN_DIGITS = 15
ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class NotJson(ValueError):
    """The bytes are no document."""


def json_texts(values: pa.Array) -> pa.Array:
    """Binary documents as text; NotJson for one that is damaged."""
    return pa.array([None if v is None else json_text(v) for v in values.to_pylist()], pa.string())


def json_text(data: bytes) -> str:
    """A document as the server prints it; an empty value (from an INSERT IGNORE) is null."""
    if not data:
        return "null"
    try:
        return "".join(_value(data[0], data, 1, 0))
    except (IndexError, struct.error, UnicodeDecodeError, KeyError) as err:
        raise NotJson("damaged JSON") from err


def _value(kind: int, data: bytes, at: int, depth: int) -> Iterator[str]:
    """The text of the value at `at`."""
    if depth > MAX_DEPTH:
        raise NotJson("nested too deep")
    if kind in (SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY):
        yield from _container(kind, data, at, depth)
    elif kind == LITERAL:
        yield LITERALS[data[at]]
    elif kind in NUMBERS:
        yield str(struct.unpack_from(NUMBERS[kind], data, at)[0])
    elif kind == DOUBLE:
        yield double_text(struct.unpack_from("<d", data, at)[0])
    elif kind == STRING:
        size, start = _length(data, at)
        yield quoted(_slice(data, start, size).decode())
    elif kind == OPAQUE:
        size, start = _length(data, at + 1)
        yield _opaque(data[at], _slice(data, start, size))
    else:
        raise NotJson(f"unknown type {kind}")


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise NotJson("past the end")
    return data[start : start + size]


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length in 7-bit bytes, and the offset behind it."""
    size = 0
    for n in range(5):
        size |= (data[at + n] & 0x7F) << (7 * n)
        if not data[at + n] & 0x80:
            return size, at + n + 1
    raise NotJson("length too long")


def _container(kind: int, data: bytes, at: int, depth: int) -> Iterator[str]:
    is_large = kind in (LARGE_OBJECT, LARGE_ARRAY)
    is_object = kind in (SMALL_OBJECT, LARGE_OBJECT)
    form, width = ("<I", 4) if is_large else ("<H", 2)
    (count,) = struct.unpack_from(form, data, at)
    keys = at + 2 * width
    values = keys + count * (width + 2) * is_object
    if values + count * (1 + width) > len(data):
        raise NotJson("past the end")
    yield "{" if is_object else "["
    for n in range(count):
        if n:
            yield ", "
        if is_object:
            entry = keys + n * (width + 2)
            (start,) = struct.unpack_from(form, data, entry)
            (size,) = struct.unpack_from("<H", data, entry + width)
            yield quoted(_slice(data, at + start, size).decode())
            yield ": "
        entry = values + n * (1 + width)
        inner = data[entry]
        is_inline = inner in (LITERAL, INT16, UINT16) or (is_large and inner in (INT32, UINT32))
        place = entry + 1
        if not is_inline:
            (start,) = struct.unpack_from(form, data, entry + 1)
            if start < 2 * width:
                raise NotJson("an offset points back")
            place = at + start
        yield from _value(inner, data, place, depth + 1)
    yield "}" if is_object else "]"


def quoted(text: str) -> str:
    """A JSON string as the server escapes it."""
    return (
        '"' + "".join(ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'
    )


def double_text(value: float) -> str:
    """A double as the server prints it: the shortest digits that give the same double. Plain
    notation is used for moderate exponents (`my_gcvt` in MySQL's `strings/dtoa.cc`), with `.0` if
    the text would look like an integer."""
    sign, rest = ("-", repr(-value)) if repr(value).startswith("-") else ("", repr(value))
    mantissa, _, exponent = rest.partition("e")
    whole, _, tail = mantissa.partition(".")
    tail = "" if tail == "0" else tail
    digits = (whole + tail).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + tail) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if point >= 1 - PLAIN_DIGITS and (point <= PLAIN_DIGITS or len(digits) > point):
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{point - 1}"


def _opaque(kind: int, data: bytes) -> str:
    if kind == DECIMAL:
        return _decimal(data)
    if kind in (DATE, TIME, DATETIME, TIMESTAMP):
        (packed,) = struct.unpack("<q", data)
        return quoted(_time(packed) if kind == TIME else _moment(kind, packed))
    text = base64.b64encode(data).decode()
    lines = [text[n : n + BASE64_LINE] for n in range(0, len(text), BASE64_LINE)]
    return quoted(f"base64:type{kind}:" + "\n".join(lines))


def _moment(kind: int, packed: int) -> str:
    whole, micros = packed >> 24, packed & 0xFFFFFF
    months = whole >> 22
    date = f"{months // 13:04}-{months % 13:02}-{(whole >> 17) & 31:02}"
    if kind == DATE:
        return date
    return f"{date} {(whole >> 12) & 31:02}:{(whole >> 6) & 63:02}:{whole & 63:02}.{micros:06}"


def _time(packed: int) -> str:
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    whole, micros = packed >> 24, packed & 0xFFFFFF
    return f"{sign}{(whole >> 12) & 1023:02}:{(whole >> 6) & 63:02}:{whole & 63:02}.{micros:06}"


def _decimal(data: bytes) -> str:
    precision, scale = data[0], data[1]
    raw = bytearray(data[2:])
    sizes = [n // 9 * 4 + DIGIT_BYTES[n % 9] for n in (precision - scale, scale)]
    if sum(sizes) != len(raw):
        raise NotJson("damaged decimal")
    negative = not raw[0] & 0x80
    raw[0] ^= 0x80
    if negative:
        raw = bytearray(b ^ 0xFF for b in raw)
    whole = _groups(bytes(raw[: sizes[0]]), precision - scale, leads=True).lstrip("0") or "0"
    tail = _groups(bytes(raw[sizes[0] :]), scale, leads=False)
    return ("-" if negative else "") + whole + (f".{tail}" if tail else "")


def _groups(raw: bytes, digits: int, *, leads: bool) -> str:
    """Digits in groups of nine. The incomplete group is first in the whole part, last in the
    fraction."""
    sizes = [9] * (digits // 9)
    if digits % 9:
        sizes = [digits % 9, *sizes] if leads else [*sizes, digits % 9]
    at, found = 0, []
    for size in sizes:
        width = DIGIT_BYTES[size]
        found.append(str(int.from_bytes(raw[at : at + width], "big")).zfill(size))
        at += width
    return "".join(found)
