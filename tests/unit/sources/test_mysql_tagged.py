"""GTID events with a tag, made by hand: what is read of them, and that damage is reported."""

from __future__ import annotations

import numpy as np
import pytest

from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.tagged import tagged_gtid

SOURCE = bytes.fromhex("3e11fa4771ca11e19e33c80aa9429562")
MICROS = 1_763_760_000_123_456


def number(value: int) -> bytes:
    """An unsigned number: the low bits of the first byte say how many bytes follow."""
    more = max(0, (value.bit_length() - 1) // 7)
    if more > 7:
        return b"\xff" + value.to_bytes(8, "little")
    return ((value << (more + 1)) | ((1 << more) - 1)).to_bytes(more + 1, "little")


def event(tag: bytes = b"blue", count: int = 300) -> bytes:
    fields = [
        number(0) + number(1),
        number(1) + b"".join(number(b) for b in SOURCE),
        number(2) + number(count * 2),
        number(3) + number(len(tag)) + tag,
        number(4) + number(0),
        number(5) + number(2),
        number(6) + number(MICROS),
    ]
    body = b"".join(fields)
    return bytes(k.HEADER) + number(1) + number(len(body)) + number(6) + body


def test_source_tag_number_and_time_are_read() -> None:
    """Guards the set of what was read, and the time of its rows to the microsecond."""
    found = tagged_gtid(event())
    assert (found.source, found.number) == ("3e11fa47-71ca-11e1-9e33-c80aa9429562:blue", 300)
    assert tagged_gtid(event(b"")).source == "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    data = np.frombuffer(event(), np.uint8)
    assert k.begin_time(data, 0, len(data), k.TAGGED_EVENT) == MICROS


@pytest.mark.parametrize("size", range(k.HEADER, k.HEADER + 34))
def test_a_cut_event_is_damage_and_read_no_further(size: int) -> None:
    """Guards the bounds: what is cut off is never read."""
    with pytest.raises(ValueError, match=r"too short|without its fields"):
        tagged_gtid(event()[:size])
    data = np.frombuffer(event()[:size], np.uint8)
    assert k.begin_time(data, 0, len(data), k.TAGGED_EVENT) == 0
