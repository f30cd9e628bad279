"""GTIDs with a tag (MySQL 8.3 and newer). They come in an event of their own, in MySQL's
`mysql::serialization` form. It has numbered fields of whole numbers; the low bits of a number's
first byte give the count of bytes that follow."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.sources.mysql.tablemaps import HEADER, Reader

FLAGS, SOURCE, NUMBER, TAG = range(4)
UUID_BYTES, MAX_TAG = 16, 32


@dataclass(frozen=True, slots=True)
class TaggedGtid:
    """`source` as a GTID set spells it: `uuid:tag`, or `uuid` alone."""

    source: str
    number: int


def tagged_gtid(event: bytes) -> TaggedGtid:
    """Parse a GTID_TAGGED_LOG event (with header, without checksum). ValueError if it is
    damaged."""
    reader = Reader(event, HEADER)
    for _ in ("version", "size", "last field that may not be passed over"):
        _number(reader)
    found: dict[int, int | str] = {}
    for wanted in (FLAGS, SOURCE, NUMBER, TAG):
        if _number(reader) != wanted:
            raise ValueError("a tagged GTID without its fields")
        if wanted == SOURCE:
            found[wanted] = bytes(_number(reader) & 0xFF for _ in range(UUID_BYTES)).hex()
        elif wanted == TAG:
            size = _number(reader)
            if size > MAX_TAG:
                raise ValueError("a tag that is too long")
            found[wanted] = reader.take(size).decode("ascii")
        else:
            found[wanted] = _number(reader)
    raw, number = str(found[SOURCE]), int(found[NUMBER])
    if number & 1:
        raise ValueError("a GTID below zero")
    source = f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
    return TaggedGtid(f"{source}:{found[TAG]}" if found[TAG] else source, number >> 1)


def _number(reader: Reader) -> int:
    """An unsigned number. A signed one has its sign in the lowest bit."""
    first = reader.number(1)
    more = 0
    while more < 8 and first >> more & 1:
        more += 1
    if more == 8:
        return reader.number(8)
    rest = reader.number(more) if more else 0
    return (first | rest << 8) >> (more + 1)
