"""Transactions that MySQL compressed: their events, one after the other."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
import zstandard

from replicators.sources.mysql.decode import grows
from replicators.sources.mysql.expand import NONE, TRANSACTION_PAYLOAD, ZSTD, Damaged, expand
from replicators.sources.mysql.tablemaps import HEADER

ROWS = 30


def event(kind: int, body: bytes, length: int | None = None) -> bytes:
    """An event without a checksum; `length` is what its header says of it."""
    size = HEADER + len(body) if length is None else length
    return struct.pack("<IBIIIH", 1, kind, 1, size, 0, 0) + body


def framed(*events: bytes) -> np.ndarray:
    """A segment's body."""
    data = b"".join(len(e).to_bytes(4, "little") + e for e in events)
    return np.frombuffer(data, np.uint8)


def packed(number: int) -> bytes:
    return b"\xfe" + number.to_bytes(8, "little")


def payload(data: bytes, size: int, kind: int = ZSTD) -> bytes:
    """A transaction payload of these bytes, said to be so many when they are plain."""
    fields = [(2, packed(kind)), (3, packed(size)), (1, packed(len(data)))]
    head = b"".join(packed(n) + packed(len(value)) + value for n, value in fields)
    return event(TRANSACTION_PAYLOAD, head + packed(0) + data)


def compressed(events: Sequence[bytes]) -> tuple[bytes, int]:
    """As the server does it, and how many bytes that were."""
    plain = b"".join(events)
    return zstandard.ZstdCompressor().compress(plain), len(plain)


def test_the_events_come_as_they_were() -> None:
    """Guards the cuts between events, which fall anywhere in the pieces that are decompressed;
    packed or not."""
    inside = [event(ROWS, bytes([n % 251]) * (n * 997 % 70_000)) for n in range(100)]
    data, size = compressed(inside)
    before, after = event(33, b"gtid"), event(16, b"12345678")
    for one in (payload(data, size), payload(b"".join(inside), size, NONE)):
        found = expand(framed(before, one, after), False)
        assert found.body.tobytes() == framed(before, *inside, after).tobytes()
        assert not found.has_checksums


def test_only_a_compressed_body_grows() -> None:
    """Guards `ByteLog.grows` of MySQL: few compressed bytes would be decoded in the run's own
    process, and could take all of its memory."""
    data, size = compressed([event(ROWS, bytes(100))])
    plain = [event(33, b"gtid"), event(ROWS, bytes(100))]
    assert grows(framed(*plain, payload(data, size)))
    assert not grows(framed(*plain))
    assert not grows(framed())


def test_a_large_transaction_is_held_once() -> None:
    """Guards a worker's memory: what is plain already is not held a second time as it is taken out
    of the compressed stream."""
    size = 1 << 20
    data, total = compressed([event(ROWS, bytes(size - HEADER))] * 48)
    body = framed(payload(data, total))
    expand(framed(payload(*compressed([event(ROWS, b"first")]))), False)
    tracemalloc.start()
    try:
        found = expand(body, False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.body) == total + 4 * 48
    assert peak < 1.4 * total


WHOLE = event(ROWS, b"x" * 1000)
DATA, SIZE = compressed([WHOLE] * 3)


@pytest.mark.parametrize(
    "damaged",
    [
        payload(DATA[:-5], SIZE),
        payload(b"no such stream", SIZE),
        payload(DATA, SIZE - 1),
        payload(DATA, SIZE + 1),
        payload(DATA, 1 << 40),
        payload(DATA, SIZE, 7),
        payload(*compressed([WHOLE, WHOLE[:-1]])),
        payload(*compressed([WHOLE, WHOLE[:10]])),
        payload(*compressed([event(ROWS, b"x", length=5)])),
        payload(*compressed([event(ROWS, b"x", length=1 << 31)])),
        payload(*compressed([WHOLE]))[:-3],
    ],
)
def test_a_damaged_payload_is_reported_at_its_place(damaged: bytes) -> None:
    """Guards against rows of the part that could be read: a transaction comes whole or its place is
    told."""
    before = event(33, b"gtid")
    with pytest.raises(Damaged) as caught:
        expand(framed(before, damaged), False)
    assert caught.value.offset == 4 + len(before)
