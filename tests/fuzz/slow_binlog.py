"""Reads the rows of a binlog event value by value, in plain Python, by MySQL's description of the
format; the oracle of the compiled decoder. Of TABLE_MAPs it uses the product's own reading. What it
has no opinion of is `Unknown`."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from replicators.sources.mysql.tablemaps import MapColumn

HEADER, CRC = 19, 4
WRITES, UPDATES = (23, 30), (24, 31)
EPOCH = dt.datetime(1970, 1, 1)
FLOATS = {4: ("<f", 4), 5: ("<d", 8)}
INTEGERS = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8}
DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class Unknown:
    """A value that this reader only steps over."""


def rows(
    event: bytes, columns: tuple[MapColumn, ...]
) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """(operation, before, after) of each row of a full event with a checksum; ValueError where it
    does not fit."""
    kind, data = event[4], event[:-CRC]
    at = HEADER + 8
    if kind >= 30:
        at += int.from_bytes(data[at : at + 2], "little")
    width, at = _packed(data, at)
    if width != len(columns):
        raise ValueError("another number of columns")
    at += (width + 7) // 8 * (2 if kind in UPDATES else 1)
    while at < len(data):
        before: list[Any] = []
        after: list[Any] = []
        if kind in WRITES:
            after, at = _image(data, at, columns)
        else:
            before, at = _image(data, at, columns)
            if kind in UPDATES:
                after, at = _image(data, at, columns)
        if at > len(data):
            raise ValueError("a row that goes past its event")
        yield (
            ("insert" if kind in WRITES else "update" if kind in UPDATES else "delete"),
            before,
            after,
        )


def _packed(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _image(data: bytes, at: int, columns: tuple[MapColumn, ...]) -> tuple[list[Any], int]:
    nulls = int.from_bytes(data[at : at + (len(columns) + 7) // 8], "little")
    at += (len(columns) + 7) // 8
    found: list[Any] = []
    for i, column in enumerate(columns):
        if nulls >> i & 1:
            found.append(None)
            continue
        value, at = _value(data, at, column)
        found.append(value)
    return found, at


def _value(data: bytes, at: int, column: MapColumn) -> tuple[Any, int]:
    kind, meta = column.kind, column.meta
    if kind in INTEGERS:
        end = at + INTEGERS[kind]
        return int.from_bytes(data[at:end], "little", signed=not column.unsigned), end
    if kind in FLOATS:
        form, size = FLOATS[kind]
        return struct.unpack(form, data[at : at + size].ljust(size, b"\0"))[0], at + size
    if kind in (15, 253, 254):
        return _text(data, at, 2 if meta > 255 else 1)
    if kind in (249, 250, 251, 252):
        return _text(data, at, meta)
    if kind in (242, 245, 255):
        _, end = _text(data, at, meta)
        return Unknown, end
    if kind in (17, 18, 19):
        return _moment(data, at, kind, meta)
    return _other(data, at, column)


def _other(data: bytes, at: int, column: MapColumn) -> tuple[Any, int]:
    kind, meta = column.kind, column.meta
    if kind == 13:
        return (data[at] + 1900 if data[at] else 0), at + 1
    if kind in (10, 14):
        return _date(int.from_bytes(data[at : at + 3], "little")), at + 3
    if kind == 16:
        bits = (meta >> 8) * 8 + (meta & 0xFF)
        end = at + (bits + 7) // 8
        # A field of 12 bits has 16 in the log; the server leaves the others 0.
        value = int.from_bytes(data[at:end], "big")
        return (value if value < 1 << bits else Unknown), end
    if kind == 246:
        return _decimal(data, at, meta & 0xFF, meta >> 8)
    if kind in (247, 248):
        return _labels(int.from_bytes(data[at : at + meta], "little"), column), at + meta
    raise ValueError(f"type {kind}")


def _labels(number: int, column: MapColumn) -> Any:
    labels = column.labels
    if column.kind == 248:
        return (
            b",".join(x for i, x in enumerate(labels) if number >> i & 1)
            if number < 1 << len(labels)
            else Unknown
        )
    if number > len(labels):
        return Unknown
    return labels[number - 1] if number else b""


def _text(data: bytes, at: int, width: int) -> tuple[bytes, int]:
    size = int.from_bytes(data[at : at + width], "little")
    end = at + width + size
    if end > len(data):
        raise ValueError("a value that goes past its event")
    return data[at + width : end], end


def _date(packed: int) -> dt.date | None:
    try:
        return dt.date(packed >> 9, packed >> 5 & 15, packed & 31)
    except ValueError:
        return None


def _moment(data: bytes, at: int, kind: int, digits: int) -> tuple[Any, int]:
    more = (digits + 1) // 2
    size = {17: 4, 18: 5, 19: 3}[kind]
    end = at + size + more
    if kind == 19:
        return Unknown, end
    fraction = int.from_bytes(data[at + size : end], "big") * 10 ** (6 - 2 * more)
    if fraction >= 1_000_000:
        return Unknown, end
    whole = int.from_bytes(data[at : at + size], "big")
    if kind == 17:
        return (
            None
            if not whole and not fraction
            else EPOCH + dt.timedelta(seconds=whole, microseconds=fraction)
        ), end
    whole -= 1 << 39
    date, clock = whole >> 17, whole & 0x1FFFF
    month = date >> 5
    try:
        return dt.datetime(
            month // 13, month % 13, date & 31, clock >> 12, clock >> 6 & 63, clock & 63, fraction
        ), end
    except ValueError:
        return Unknown if clock >> 12 > 23 or clock >> 6 & 63 > 59 or clock & 63 > 59 else None, end


def _decimal(data: bytes, at: int, precision: int, scale: int) -> tuple[Any, int]:
    sizes = [n // 9 * 4 + DIGITS[n % 9] for n in (precision - scale, scale)]
    end = at + sum(sizes)
    raw = bytearray(data[at:end])
    is_negative = not raw[0] & 0x80
    raw[0] ^= 0x80
    if is_negative:
        raw = bytearray(b ^ 0xFF for b in raw)
    whole, rest = raw[: sizes[0]], raw[sizes[0] :]
    text = ""
    first = (precision - scale) % 9
    groups = [(DIGITS[first], first)] + [(4, 9)] * ((precision - scale) // 9)
    for part, counts in (
        (whole, groups),
        (rest, [(4, 9)] * (scale // 9) + [(DIGITS[scale % 9], scale % 9)]),
    ):
        place = 0
        for size, count in counts:
            number = int.from_bytes(part[place : place + size], "big")
            if count and number >= 10**count:
                return Unknown, end
            text += f"{number:0{count}}" if count else ""
            place += size
    # Not by arithmetic, which rounds to 28 digits.
    return Decimal(f"{'-' if is_negative else ''}{text or '0'}E-{scale}"), end
