"""Binlog events made by hand, and a reader that is fed with them instead of by a server."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np

from replicators.connectors.log import LogBlock
from replicators.connectors.model.schema import TableId
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.blocks import BlockCutter
from replicators.sources.mysql.log import LogReader
from replicators.sources.mysql.offsets import MARIADB, Coordinates
from replicators.sources.mysql.params import MysqlParams

FILE, START = "binlog.000001", 4
STANDALONE = 1
QUERY, XID, INCIDENT, EXECUTE_LOAD, TABLE_MAP, WRITE_ROWS = 2, 16, 26, 18, 19, 23


class Log:
    """Events of one MariaDB file, without checksums, each where the one before ends."""

    def __init__(self, offset: int = START) -> None:
        self.offset = offset
        self.number = 0

    def event(self, kind: int, body: bytes) -> bytes:
        """Any event."""
        size = k.HEADER + len(body)
        self.offset += size
        return struct.pack("<IBIIIH", 1_700_000_000, kind, 1, size, self.offset, 0) + body

    def begin(self, flags: int = 0) -> bytes:
        """The GTID that begins a group."""
        self.number += 1
        return self.event(k.MARIADB_GTID_EVENT, struct.pack("<QIB6x", self.number, 0, flags))

    def query(self, text: str, kind: int = QUERY, more: bytes = b"") -> bytes:
        """A statement, with `shop` as its database."""
        head = struct.pack("<IIBHH", 1, 0, 4, 0, 0) + more
        return self.event(kind, head + b"shop\0" + text.encode())

    def table_map(self, number: int, name: str) -> bytes:
        """A table of the database `shop` with one column `id`, an INT."""
        body = number.to_bytes(6, "little") + b"\1\0\4shop\0" + bytes([len(name)]) + name.encode()
        return self.event(TABLE_MAP, body + b"\0\1\3\0\0\4\3\2id")

    def insert(self, number: int, value: int) -> bytes:
        """A row of that table."""
        body = number.to_bytes(6, "little") + b"\1\0\1\xff\0" + struct.pack("<i", value)
        return self.event(WRITE_ROWS, body)

    def commit(self) -> bytes:
        """The end of a group."""
        return self.event(XID, bytes(8))


class Fed:
    """A `LogReader` without a server."""

    def __init__(self, *names: str) -> None:
        self.reader = LogReader(MysqlParams(host="", port=0, user="", password=""), "test")
        start = Coordinates(MARIADB, "1", FILE, START)
        self.cutter = BlockCutter(start, {}, [TableId("shop", n) for n in names])
        self.reader._cutter = self.cutter

    def feed(self, events: Iterable[bytes]) -> list[LogBlock]:
        """The blocks that these events give, with what is complete at their end."""
        raw = b"".join((len(e) + 1).to_bytes(3, "little") + b"\0\0" + e for e in events)
        self.reader._input = np.frombuffer(bytearray(raw), np.uint8)
        self.cutter.state[[k.P_READ, k.P_FILLED]] = 0, len(raw)
        found = []
        while True:
            self.reader._pump(self.cutter)
            if not self.cutter.ready:
                self.cutter.emit_closed()
            if not self.cutter.ready:
                assert self.cutter.state[k.P_READ] == len(raw)
                return found
            found.append(self.cutter.ready.popleft())
