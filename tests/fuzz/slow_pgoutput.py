"""Reads a row message of pgoutput value by value, in plain Python, by PostgreSQL's description of
the protocol; the oracle of the compiled decoder. What it has no opinion of is `Unknown`."""

from __future__ import annotations

import struct
import uuid
from decimal import Decimal, InvalidOperation
from typing import Any

BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, FLOAT4, FLOAT8 = 16, 17, 20, 21, 23, 25, 26, 700, 701
VARCHAR, UUID, NUMERIC = 1043, 2950, 1700
SIZES = {INT2: ">h", INT4: ">i", INT8: ">q", OID: ">I", FLOAT4: ">f", FLOAT8: ">d"}


class Unknown:
    """A value that this reader only steps over, or one that was not sent."""


def row(message: bytes, oids: list[int]) -> tuple[str, list[Any] | None, list[Any] | None]:
    """(kind, before, after) of an Insert, Update or Delete; ValueError where it does not fit."""
    kind, at = chr(message[0]), 5
    before = after = None
    mark = chr(message[at])
    if kind in "UD" and mark in "KO":
        before, at = _tuple(message, at + 1, oids)
        mark = chr(message[at]) if at < len(message) else ""
    if kind in "IU":
        if mark != "N":
            raise ValueError("no new row")
        after, at = _tuple(message, at + 1, oids)
    if at != len(message):
        raise ValueError("bytes behind the row")
    return kind, before, after


def _tuple(message: bytes, at: int, oids: list[int]) -> tuple[list[Any], int]:
    (count,) = struct.unpack_from(">H", message, at)
    if count != len(oids):
        raise ValueError("another number of columns")
    at += 2
    found: list[Any] = []
    for oid in oids:
        form, at = chr(message[at]), at + 1
        if form in "nu":
            found.append(None if form == "n" else Unknown)
            continue
        (size,) = struct.unpack_from(">i", message, at)
        at += 4
        if form not in "bt" or size < 0 or at + size > len(message):
            raise ValueError("a value that does not fit")
        raw = message[at : at + size]
        try:
            found.append(_binary(raw, oid) if form == "b" else _text(raw, oid))
        except UnicodeDecodeError:
            # Such a row is reported as one that does not fit.
            found.append(Unknown)
        at += size
    return found, at


def _binary(raw: bytes, oid: int) -> Any:
    if oid in SIZES:
        return struct.unpack(SIZES[oid], raw)[0]
    if oid == BOOL:
        return raw != b"\0"
    if oid in (TEXT, VARCHAR):
        return raw.decode()
    if oid == BYTEA:
        return raw
    return str(uuid.UUID(bytes=raw)) if oid == UUID else Unknown


def _text(raw: bytes, oid: int) -> Any:
    text = raw.decode()
    if oid in (INT2, INT4, INT8, OID):
        return int(text)
    if oid in (TEXT, VARCHAR):
        return text
    if oid == BOOL:
        return text == "t"
    if oid == NUMERIC:
        try:
            return Decimal(text)
        except InvalidOperation:
            return Unknown
    return bytes.fromhex(text[2:]) if oid == BYTEA and text[:2] == "\\x" else Unknown
