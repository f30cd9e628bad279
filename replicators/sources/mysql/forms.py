"""The last step in converting a column of bytes, the same for log and snapshot: characters, UUIDs,
addresses, JSON, vectors."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from replicators.connectors.model.schema import Column
from replicators.sources.mysql.charsets import UTF8, to_utf8
from replicators.sources.mysql.jsonb import json_texts

NOT_TEXT = "the text is not valid in its character set"


class NotText(ValueError):
    """Bytes that are invalid for the column's type. `row`: the first such row if known, else 0."""

    def __init__(self, reason: str, row: int = 0) -> None:
        super().__init__(reason)
        self.row = row


def finish(values: pa.Array, column: Column) -> pa.Array:
    """A binary array in the form that the column's wire word names. NotText for a value that can't
    be converted."""
    wire = column.wire
    word, _, charset = wire.partition(":")
    if word in ("bytes", "geometry"):
        return values
    if word == "vector":
        return _vectors(values)
    if wire in FORMS:
        return _by_value(values, FORMS[wire])
    if wire == "json":
        try:
            return json_texts(values)
        except ValueError as err:
            raise NotText("the JSON document is damaged") from err
    if word == "text" and charset not in UTF8:
        try:
            return to_utf8(values, charset)
        except ValueError as err:
            raise NotText(NOT_TEXT) from err
    texts = values.view(pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as err:
        raise NotText(NOT_TEXT) from err
    return texts


def uuid_text(raw: bytes) -> str:
    """A UUID's 36 characters."""
    return str(uuid.UUID(bytes=raw))


def inet4_text(raw: bytes) -> str:
    """An IPv4 address."""
    return str(ipaddress.IPv4Address(raw))


def inet6_text(raw: bytes) -> str:
    """An IPv6 address as MariaDB prints it: mapped and compatible IPv4 addresses with dots."""
    if raw[:10] == bytes(10) and raw[10:12] == b"\xff\xff":
        return f"::ffff:{inet4_text(raw[12:])}"
    if raw[:12] == bytes(12) and raw[12:14] != b"\0\0":
        return f"::{inet4_text(raw[12:])}"
    groups = [f"{raw[i] << 8 | raw[i + 1]:x}" for i in range(0, 16, 2)]
    runs = [n for n in range(8) if groups[n] == "0" and (n == 0 or groups[n - 1] != "0")]
    if not runs:
        return ":".join(groups)
    first = max(runs, key=lambda n: _zeros(groups, n))
    last = first + _zeros(groups, first)
    return ":".join(groups[:first]) + "::" + ":".join(groups[last:])


def _zeros(groups: list[str], first: int) -> int:
    """How many zero groups follow each other. The servers shorten even a single one."""
    return next((n for n in range(first, 8) if groups[n] != "0"), 8) - first


FORMS: dict[str, Callable[[bytes], str]] = {
    "uuid": uuid_text,
    "inet4": inet4_text,
    "inet6": inet6_text,
}


def _by_value(values: pa.Array, form: Callable[[bytes], str]) -> pa.Array:
    coded = values.dictionary_encode()
    words = pa.array([form(v) for v in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)


def _vectors(values: pa.Array) -> pa.Array:
    """Little-endian 32-bit floats."""
    valid, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32)[: len(values) + 1]
    if (starts % 4).any():
        raise NotText("the vector has no whole number of floats")
    floats = pa.Array.from_buffers(pa.float32(), int(starts[-1]) // 4, [None, data])
    return pa.Array.from_buffers(
        pa.list_(pa.float32()),
        len(values),
        [valid, pa.py_buffer(np.ascontiguousarray(starts // 4))],
        values.null_count,
        children=[floats],
    )
