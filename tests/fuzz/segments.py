"""Mutated whole segments through `decode` as it is used: TABLE_MAPs, Relations, statements,
transactions and rows. Whatever the bytes, it gives tables, poisons, or what was passed over; where
a checksum was not made right again, nothing but poisons."""

from __future__ import annotations

import random
import struct
import zlib
from collections import Counter
from typing import Any

import numpy as np

from replicators.connectors.log import DecodedTable, LogDecoder, PassedOver, Poison

HEADER, CRC = 19, 4
INTERESTING = (0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
KINDS = (2, 19, 23, 24, 25, 30, 31, 32, 40, 166, 167, 168)
MOST_MESSAGES = 40


def walk(
    decode: LogDecoder,
    segment: dict[str, Any],
    body: np.ndarray,
    count: int,
    seed: int,
    *,
    is_binlog: bool,
) -> Counter[str]:
    """What `count` mutated segments gave. AssertionError, or whatever the decoder raised, names the
    segment."""
    chance = random.Random(seed)
    messages = messages_of(body.tobytes())
    head = {"context": segment["context"], "tables": segment["tables"]}
    seen: Counter[str] = Counter()
    for number in range(count):
        is_mended = not is_binlog or chance.random() < 0.9
        parts = _chosen(messages, chance)
        hit = {chance.randrange(len(parts)) for _ in range(chance.choice((1, 1, 3)))}
        raw = b"".join(
            _mutated(x, chance, is_mended=is_mended, is_binlog=is_binlog) if n in hit else framed(x)
            for n, x in enumerate(parts)
        )
        try:
            found = list(decode(head, np.frombuffer(raw, np.uint8), 1))
            for part in found:
                seen[_outcome(part)] += 1
                if isinstance(part, DecodedTable):
                    assert is_mended, "a wrong checksum was not seen"
                    part.changes.validate(full=True)
        except Exception as err:
            err.add_note(f"segment {number} of seed {seed}")
            raise
    return seen


def _outcome(part: DecodedTable | Poison | PassedOver) -> str:
    if isinstance(part, Poison):
        return part.code
    return "tables" if isinstance(part, DecodedTable) else "passed over"


def messages_of(raw: bytes) -> list[bytes]:
    """A body's messages, without their frames."""
    found, at = [], 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        found.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _chosen(messages: list[bytes], chance: random.Random) -> list[bytes]:
    """A run of a long segment, with its beginning, where transactions and maps are reported."""
    if len(messages) <= MOST_MESSAGES:
        return messages
    at = chance.randrange(len(messages))
    return [*messages[: MOST_MESSAGES // 2], *messages[at : at + MOST_MESSAGES // 2]]


def framed(message: bytes) -> bytes:
    """A message as it lies in a body."""
    return struct.pack("<I", len(message)) + message


def _mutated(message: bytes, chance: random.Random, *, is_mended: bool, is_binlog: bool) -> bytes:
    if not is_mended:
        broken = bytearray(message)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        return framed(bytes(broken))
    if not is_binlog:
        return framed(_changed(bytearray(message), 0, chance))
    data = _changed(bytearray(message[:-CRC]), HEADER, chance)
    head = bytearray(data[:HEADER].ljust(HEADER, b"\0"))
    if chance.random() < 0.02:
        head[4] = chance.choice(KINDS)
    head[9:13] = struct.pack("<I", max(len(data), HEADER) + CRC)
    whole = bytes(head) + data[HEADER:]
    return framed(whole + struct.pack("<I", zlib.crc32(whole)))


def _changed(data: bytearray, first: int, chance: random.Random) -> bytes:
    """A few bytes changed, left out, doubled or cut off."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(first, max(first + 1, len(data)))
        act = chance.randrange(6)
        if act == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif act == 1 and at < len(data):
            data[at] = chance.choice(INTERESTING)
        elif act == 2:
            data[at : at + chance.randrange(1, 9)] = b""
        elif act == 3:
            data[at:at] = data[at : at + chance.randrange(1, 9)]
        elif act == 4:
            del data[at:]
        else:
            data[at : at + 2] = struct.pack("<H", chance.randrange(1 << 16))
    return bytes(data)
