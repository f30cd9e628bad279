"""Positions in a binlog and sets of GTIDs of both flavours; asks no server.

`Position.ordinal` is the file's number << 35 | the offset in it. A number of files is added to the
file's number; it grows whenever the log continues at another server or begins again, so all
positions of a stream are in order. `Position.detail` holds the server, the incarnation of the file,
and the GTIDs up to there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from replicators.connectors.model.positions import Position

OFFSET_BITS = 35
ERA_BITS = 16
MARIADB, MYSQL = "mariadb", "mysql"
_NUMBER = re.compile(r"\.(\d+)$")


def file_number(name: str) -> int:
    """The number at the end of a binlog file's name; ValueError where there is none."""
    found = _NUMBER.search(name)
    if found is None:
        raise ValueError(f"not a binlog file: {name!r}")
    return int(found.group(1))


def value_at(number: int, offset: int) -> int:
    """The integer by which positions are ordered."""
    return (number << OFFSET_BITS) | offset


@dataclass(frozen=True, slots=True)
class Coordinates:
    """A file of the binlog and an offset in it. `stamp`: the file's creation time (0: unknown),
    which reveals a reset log. `prepared`: XID, file and offset of each transaction that was
    prepared before and waits for its end. `steps`: what statements did to tables' columns
    (`steps.TableStep`). `era`: files added to the file's number in `value`. `by_gtids`: the stream
    continues after `gtids`, because it came from another server, whose log may have transactions in
    another order. File and offset are then informative only; an empty file means that the server
    has yet to tell it."""

    flavour: str
    server: str
    file: str
    offset: int
    gtids: str = ""
    stamp: int = 0
    prepared: tuple[tuple[str, str, int], ...] = ()
    steps: tuple[tuple[Any, ...], ...] = ()
    era: int = 0
    by_gtids: bool = False

    @property
    def number(self) -> int:
        """The file's number within the stream, across servers."""
        return file_number(self.file) + self.era

    @property
    def value(self) -> int:
        return value_at(self.number, self.offset)

    def next_era(self) -> int:
        """An `era` after which every position is higher than any from this server. The server may
        have been read some files ahead, so the step is at least 65,536 files."""
        return ((self.number >> ERA_BITS) + 2) << ERA_BITS

    def position(self) -> Position:
        """The `Position` that the engine keeps."""
        detail: dict[str, Any] = {
            "flavour": self.flavour,
            "server": self.server,
            "file": self.file,
            "offset": self.offset,
            "gtids": self.gtids,
            "stamp": self.stamp,
        }
        if self.prepared:
            detail["prepared"] = [list(p) for p in self.prepared]
        if self.steps:
            detail["steps"] = [list(s) for s in self.steps]
        if self.era:
            detail["era"] = self.era
        if self.by_gtids:
            detail["by_gtids"] = True
        return Position(self.value, detail)

    @classmethod
    def of(cls, position: Position) -> Coordinates:
        """The inverse of `position`."""
        known: dict[str, Any] = position.detail
        return cls(
            str(known["flavour"]),
            str(known["server"]),
            str(known["file"]),
            int(known["offset"]),
            str(known.get("gtids", "")),
            int(known.get("stamp", 0)),
            tuple((str(x), str(f), int(o)) for x, f, o in known.get("prepared", ())),
            tuple(tuple(s) for s in known.get("steps", ())),
            int(known.get("era", 0)),
            bool(known.get("by_gtids", False)),
        )


class MariadbGtids:
    """The last GTID of each replication domain: `0-1-100,1-5-7`."""

    def __init__(self, text: str = "") -> None:
        self._last: dict[int, tuple[int, int]] = {}
        for domain, server, number in _mariadb_gtids(text):
            self.add(domain, server, number)

    def add(self, domain: int, server: int, number: int) -> None:
        """Add a complete transaction of that domain."""
        self._last[domain] = (server, number)

    def is_within(self, other: MariadbGtids) -> bool:
        """Whether `other` reached at least the same number in every domain."""
        return all(n <= other._last.get(d, (0, -1))[1] for d, (_, n) in self._last.items())

    def is_in_state(self, state: str) -> bool:
        """Whether a server with the `gtid_binlog_state` `state` (the last GTID of each domain and
        server) has each of these."""
        reached = {(d, s): n for d, s, n in _mariadb_gtids(state)}
        return all(n <= reached.get((d, s), -1) for d, (s, n) in self._last.items())

    def __str__(self) -> str:
        return ",".join(f"{d}-{s}-{n}" for d, (s, n) in sorted(self._last.items()))


def _mariadb_gtids(text: str) -> Iterator[tuple[int, int, int]]:
    for part in filter(None, (p.strip() for p in text.split(","))):
        domain, server, number = (int(n) for n in part.split("-"))
        yield domain, server, number


class MysqlGtids:
    """Ranges of numbers by source (and tag): `uuid:1-5:7:tag:1-3,uuid2:1`."""

    def __init__(self, text: str = "") -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        for part in filter(None, (p.strip() for p in text.replace("\n", "").split(","))):
            source, *rest = part.split(":")
            key = source.lower()
            for word in rest:
                if not word[:1].isdigit():
                    key = f"{source.lower()}:{word.strip().lower()}"
                    continue
                low, _, high = word.partition("-")
                self.add(key, int(low), int(high or low))

    def add(self, source: str, first: int, last: int) -> None:
        """Add these complete transactions."""
        found = self._ranges.setdefault(source, [])
        if found and found[-1][0] <= first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
            return
        found.append((first, last))
        found.sort()
        merged = [found[0]]
        for low, high in found[1:]:
            if low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        self._ranges[source] = merged

    def is_within(self, other: MysqlGtids) -> bool:
        """Whether every GTID of this set is in `other`."""
        return all(
            any(a <= low and high <= b for a, b in other._ranges.get(source, ()))
            for source, ranges in self._ranges.items()
            for low, high in ranges
        )

    def without(self, other: MysqlGtids) -> MysqlGtids:
        """This set without the GTIDs of `other`."""
        found = MysqlGtids()
        for source, ranges in self._ranges.items():
            for low, high in ranges:
                for a, b in other._ranges.get(source, ()):
                    if low < a <= high:
                        found.add(source, low, a - 1)
                    if a <= high:
                        low = max(low, b + 1)
                if low <= high:
                    found.add(source, low, high)
        return found

    def encoded(self) -> bytes:
        """The form for COM_BINLOG_DUMP_GTID: 16 bytes per source, a tag if any source has one, and
        ranges with exclusive ends."""
        has_tags = any(":" in source for source in self._ranges)
        count = len(self._ranges)
        parts = [struct.pack("<Q", (1 << 56 | count << 8 | 1) if has_tags else count)]
        for source, ranges in sorted(self._ranges.items()):
            uuid, _, tag = source.partition(":")
            parts.append(bytes.fromhex(uuid.replace("-", "")))
            if has_tags:
                parts.append(bytes([len(tag) << 1]) + tag.encode())
            parts.append(struct.pack("<Q", len(ranges)))
            parts += [struct.pack("<QQ", low, high + 1) for low, high in ranges]
        return b"".join(parts)

    def __str__(self) -> str:
        return ",".join(
            ":".join([s, *(f"{a}-{b}" if b > a else str(a) for a, b in ranges)])
            for s, ranges in sorted(self._ranges.items())
        )


Gtids = MariadbGtids | MysqlGtids


def gtids_of(flavour: str, text: str) -> Gtids:
    """Parse a set in the flavour's own form."""
    return MariadbGtids(text) if flavour == MARIADB else MysqlGtids(text)


def is_within(flavour: str, part: str, whole: str) -> bool:
    """Whether the server that has `whole` has all of `part`."""
    if flavour == MARIADB:
        return MariadbGtids(part).is_within(MariadbGtids(whole))
    return MysqlGtids(part).is_within(MysqlGtids(whole))
