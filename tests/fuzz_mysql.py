"""Mutates real binlog events and decodes them: `python -m tests.fuzz_mysql <segment.json> <segments> <seed>`.

Run with NUMBA_BOUNDSCHECK=1, so that a read past the end of a buffer is an error and not luck. Whatever the bytes, decoding
gives tables or poisons; where a checksum was not made right again, nothing but poisons.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from replicators.connectors.source import DecodedTable
from replicators.sources.mysql.decode import decode

HEADER, CRC = 19, 4
INTERESTING = (0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)


def events_of(body: bytes) -> list[bytes]:
    """The events of a segment's body, without their frames."""
    found, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "little")
        found.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def mutated(event: bytes, chance: random.Random) -> bytes:
    """An event with a few bytes changed, left out, doubled or cut off."""
    data = bytearray(event[:-CRC])
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(HEADER, max(HEADER + 1, len(data)))
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
    if chance.random() < 0.02:
        data[4] = chance.choice((2, 19, 23, 24, 25, 30, 31, 32, 40, 166, 167, 168))
    return bytes(data)


def framed(event: bytes) -> bytes:
    """An event with the right length and checksum."""
    head = bytearray(event[:HEADER].ljust(HEADER, b"\0"))
    head[9:13] = struct.pack("<I", max(len(event), HEADER) + CRC)
    whole = bytes(head) + event[HEADER:]
    whole += struct.pack("<I", zlib.crc32(whole))
    return struct.pack("<I", len(whole)) + whole


def main() -> int:
    """0 where every mutation was borne."""
    given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    count, chance = int(sys.argv[2]), random.Random(int(sys.argv[3]))
    events = events_of(base64.b64decode(given["body"]))
    head = {"context": given["context"], "tables": given["tables"]}
    seen: dict[str, int] = {}
    for number in range(count):
        hit = {chance.randrange(len(events)) for _ in range(chance.choice((1, 1, 3)))}
        is_mended = chance.random() < 0.9
        parts = []
        for n, event in enumerate(events):
            if n not in hit:
                parts.append(struct.pack("<I", len(event)) + event)
            elif is_mended:
                parts.append(framed(mutated(event, chance)))
            else:
                broken = bytearray(event)
                broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
                parts.append(struct.pack("<I", len(event)) + bytes(broken))
        body = np.frombuffer(b"".join(parts), np.uint8)
        try:
            found = list(decode(head, body, 1))
        except Exception:
            sys.stderr.write(f"segment {number}, seed {sys.argv[3]}\n")
            raise
        for part in found:
            word = "table" if isinstance(part, DecodedTable) else part.code
            seen[word] = seen.get(word, 0) + 1
            if isinstance(part, DecodedTable):
                assert is_mended, f"segment {number}: a wrong checksum was not seen"
                part.changes.validate(full=True)
    sys.stdout.write(json.dumps(seen) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
