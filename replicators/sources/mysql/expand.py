"""Expands compressed events before anything is decoded: MySQL's transaction payloads (zstd), and
MariaDB's compressed rows and queries (zlib). A body without any is left as it is.

Formats: MySQL, "Transaction_payload_event"; MariaDB, `sql/log_event.cc`, `binlog_buf_compress`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from typing import Any

import numpy as np
from numba import njit

from replicators.sources.mysql.tablemaps import HEADER, Reader

TRANSACTION_PAYLOAD, QUERY, QUERY_COMPRESSED = 40, 2, 165
PLAIN_ROWS = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
UPDATES = frozenset({24, 31})
MAX_BYTES = 1 << 31
PIECE_BYTES = 1 << 20
ZSTD, NONE = 0, 255
END, SIZE, KIND, PLAIN_SIZE = range(4)


class Damaged(Exception):
    """The segment can't be read from this byte on."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"damaged at byte {offset}")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Expanded:
    """Events without any compressed one. Rewritten events carry no checksum; if there are any, no
    event carries one."""

    body: np.ndarray
    has_checksums: bool


@njit(cache=True, nogil=True)
def has_compressed(d):  # type: ignore[no-untyped-def]
    """Whether any event is compressed. A damaged frame ends the search; later steps report it."""
    p, end = np.int64(0), np.int64(len(d))
    while end - p >= 23:
        size = (
            np.int64(d[p])
            | np.int64(d[p + 1]) << 8
            | np.int64(d[p + 2]) << 16
            | np.int64(d[p + 3]) << 24
        )
        t = d[p + 8]
        if t == 40 or (t >= 165 and t <= 171):
            return True
        p += 4 + size
    return False


def expand(body: np.ndarray, has_checksums: bool) -> Expanded:
    """The body with every compressed event expanded. `Damaged` names the first that can't be."""
    if not has_compressed(body):
        return Expanded(body, has_checksums)
    out = bytearray()
    raw = body.data.cast("B")
    at = 0
    while at < len(raw):
        try:
            size = int.from_bytes(raw[at : at + 4], "little")
            event = bytes(raw[at + 4 : at + 4 + size])
            if size < HEADER + 4 * has_checksums or len(event) != size:
                raise ValueError("damaged frame")
            if has_checksums:
                event = _checked(event)
            for plain in _plain(event):
                out += len(plain).to_bytes(4, "little")
                out += plain
                if len(out) > MAX_BYTES:
                    raise ValueError("too large")
        except (ValueError, zlib.error) as err:
            raise Damaged(at) from err
        at += 4 + size
    return Expanded(np.frombuffer(out, np.uint8), False)


def _checked(event: bytes) -> bytes:
    if zlib.crc32(event[:-4]) != int.from_bytes(event[-4:], "little"):
        raise ValueError("wrong checksum")
    return _resized(event[:-4])


def _resized(event: bytes, kind: int | None = None) -> bytes:
    """The event with its header's length, and type if given, corrected."""
    head = bytearray(event[:HEADER])
    head[9:13] = len(event).to_bytes(4, "little")
    if kind is not None:
        head[4] = kind
    return bytes(head) + event[HEADER:]


def _plain(event: bytes) -> Iterator[bytes]:
    kind = event[4]
    if kind == TRANSACTION_PAYLOAD:
        yield from _payload(event)
    elif kind == QUERY_COMPRESSED:
        reader = Reader(event, HEADER + 8)
        database = reader.number(1)
        reader.take(2)
        reader.take(reader.number(2) + database + 1)
        yield _resized(event[: reader.at] + _inflated(event[reader.at :]), QUERY)
    elif kind in PLAIN_ROWS:
        plain = PLAIN_ROWS[kind]
        reader = Reader(event, HEADER + 8)
        if plain >= 30:
            reader.take(max(0, reader.number(2) - 2))
        width = (reader.packed() + 7) // 8
        reader.take(2 * width if plain in UPDATES else width)
        yield _resized(event[: reader.at] + _inflated(event[reader.at :]), plain)
    else:
        yield event


def _inflated(data: bytes) -> bytes:
    """Inflate MariaDB's form: a byte (0x80 | algorithm << 4 | size of the length), the length
    (big-endian), the zlib stream."""
    reader = Reader(data)
    head = reader.number(1)
    size = head & 7
    if not head & 0x80 or (head >> 4) & 7 or not 0 < size <= 4:
        raise ValueError("unknown compression")
    length = int.from_bytes(reader.take(size), "big")
    if length > MAX_BYTES:
        raise ValueError("too large")
    unpack = zlib.decompressobj()
    plain = unpack.decompress(reader.take(reader.left), length + 1)
    if len(plain) != length:
        raise ValueError("wrong length")
    return plain


def _payload(event: bytes) -> Iterator[bytes]:
    """The events of a transaction payload, decompressed one at a time. They carry no checksum and
    no position."""
    reader = Reader(event, HEADER)
    fields: dict[int, int] = {}
    while (field := reader.packed()) != END:
        value = Reader(reader.text())
        fields[field] = value.packed()
    data = reader.take(fields.get(SIZE, reader.left))
    kind = fields.get(KIND, ZSTD)
    size = fields.get(PLAIN_SIZE, 0)
    if size > MAX_BYTES or kind not in (ZSTD, NONE):
        raise ValueError("unknown compression")
    done = 0
    with _stream(data, kind) as stream:
        while head := _read(stream, HEADER):
            length = int.from_bytes(head[9:13], "little")
            done += length
            if length < HEADER or done > (size or MAX_BYTES):
                raise ValueError("damaged frame")
            plain = head + _read(stream, length - HEADER)
            if len(plain) != length:
                raise ValueError("damaged frame")
            yield plain
    if size and done != size:
        raise ValueError("wrong length")


def _stream(data: bytes, kind: int) -> BufferedReader:
    import zstandard

    raw: Any = BytesIO(data) if kind == NONE else zstandard.ZstdDecompressor().stream_reader(data)
    return BufferedReader(raw, PIECE_BYTES)


def _read(stream: BufferedReader, size: int) -> bytes:
    """Read `size` bytes; fewer at the end."""
    import zstandard

    try:
        return stream.read(size)
    except zstandard.ZstdError as err:
        raise ValueError("not a zstd stream") from err
