"""Positions in a binlog and sets of GTIDs of both flavours; asks no server.

`Position.value` is the file's number << 35 | the offset in it: it orders positions of one server between two resets of
its log. `Position.detail` says which server and which incarnation of the file that was, and the GTIDs up to there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from replicators.connectors.offsets import Position

OFFSET_BITS = 35
MARIADB, MYSQL = "mariadb", "mysql"
_NUMBER = re.compile(r"\.(\d+)$")


def file_number(name: str) -> int:
    """The number at the end of a binlog file's name; ValueError where there is none."""
    found = _NUMBER.search(name)
    if found is None:
        raise ValueError(f"not a binlog file: {name!r}")
    return int(found.group(1))


def value_at(number: int, offset: int) -> int:
    """What orders positions."""
    return (number << OFFSET_BITS) | offset


def offset_of(value: int) -> int:
    """The offset within its file."""
    return value & ((1 << OFFSET_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where in which file; `stamp` is the file's time of making (0: not known), by which a reset log is seen. `prepared`:
    XID, file and offset of each transaction that was prepared before and waits for its end; `dropped`: schema, table and
    name of columns that were dropped and not made again."""

    flavour: str
    server: str
    file: str
    offset: int
    gtids: str = ""
    stamp: int = 0
    prepared: tuple[tuple[str, str, int], ...] = ()
    dropped: tuple[tuple[str, str, str], ...] = ()

    @property
    def value(self) -> int:
        return value_at(file_number(self.file), self.offset)

    def position(self) -> Position:
        """As the engine keeps it."""
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
        if self.dropped:
            detail["dropped"] = [list(d) for d in self.dropped]
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
            tuple((str(s), str(t), str(c)) for s, t, c in known.get("dropped", ())),
        )


class MariadbGtids:
    """The last GTID of each replication domain: `0-1-100,1-5-7`."""

    def __init__(self, text: str = "") -> None:
        self._last: dict[int, tuple[int, int]] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            domain, server, number = (int(n) for n in part.split("-"))
            self.add(domain, server, number)

    def add(self, domain: int, server: int, number: int) -> None:
        """A transaction of that domain is complete."""
        self._last[domain] = (server, number)

    def is_within(self, other: MariadbGtids) -> bool:
        """Whether `other` went at least as far in every domain."""
        return all(n <= other._last.get(d, (0, -1))[1] for d, (_, n) in self._last.items())

    def __str__(self) -> str:
        return ",".join(f"{d}-{s}-{n}" for d, (s, n) in sorted(self._last.items()))


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
        """Those transactions are complete."""
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

    def __str__(self) -> str:
        return ",".join(
            ":".join([s, *(f"{a}-{b}" if b > a else str(a) for a, b in ranges)])
            for s, ranges in sorted(self._ranges.items())
        )


Gtids = MariadbGtids | MysqlGtids


def gtids_of(flavour: str, text: str) -> Gtids:
    """A set in the flavour's own form."""
    return MariadbGtids(text) if flavour == MARIADB else MysqlGtids(text)


def is_within(flavour: str, part: str, whole: str) -> bool:
    """Whether the server that has `whole` has everything of `part`."""
    if flavour == MARIADB:
        return MariadbGtids(part).is_within(MariadbGtids(whole))
    return MysqlGtids(part).is_within(MysqlGtids(whole))
