"""Does a server's log continue at a position? (CORRECTNESS 26.) Changes nothing."""

from __future__ import annotations

import struct
import time

import numpy as np

from replicators.connectors.errors import ReplicationError
from replicators.connectors.offsets import Position
from replicators.sources.mysql.connections import (
    Connection,
    Server,
    log_end,
    query,
    records,
    server_of,
)
from replicators.sources.mysql.dump import Dump
from replicators.sources.mysql.offsets import Coordinates, is_within
from replicators.sources.mysql.params import MysqlParams

FORMAT_EVENT = 15
START_OFFSET = 4
LOOK_BYTES = 1 << 12
LOOK_SECONDS = 10.0


def verify(
    connection: Connection, params: MysqlParams, name: str, position: Position | None
) -> None:
    """Raise `source:position-lost` where changes after `position` can't be had from this server, `source:setting` where it
    writes no log."""
    server = server_of(connection)
    end = log_end(connection, server)
    if end is None:
        raise ReplicationError(
            "source:setting", setting="log_bin", value="OFF", wanted="ON", statement="log_bin = ON"
        )
    if position is None:
        return
    known = Coordinates.of(position)
    if (known.flavour, known.server) != (server.flavour, server.identity):
        raise ReplicationError("source:position-lost", reason="this is another server")
    _verify_file(connection, known)
    if known.gtids:
        _verify_gtids(connection, server, known, end)
    if known.stamp and known.stamp != file_stamp(params, name, known.file):
        raise ReplicationError("source:position-lost", reason="the server's binlog was reset")


def _verify_file(connection: Connection, known: Coordinates) -> None:
    sizes = {r["log_name"]: int(r["file_size"]) for r in records(connection, "SHOW BINARY LOGS")}
    if known.file not in sizes:
        raise ReplicationError(
            "source:position-lost", reason=f"the server no longer has the binlog file {known.file}"
        )
    if known.offset > sizes[known.file]:
        raise ReplicationError(
            "source:position-lost",
            reason=f"the server's binlog file {known.file} ends before it, as after a restore",
        )


def _verify_gtids(
    connection: Connection, server: Server, known: Coordinates, end: Coordinates
) -> None:
    if not is_within(server.flavour, known.gtids, end.gtids):
        raise ReplicationError(
            "source:position-lost", reason="the server lacks transactions that were already copied"
        )
    if server.is_mariadb:
        return
    purged = str(query(connection, "SELECT @@global.gtid_purged")[0][0] or "")
    if not is_within(server.flavour, purged, known.gtids):
        raise ReplicationError(
            "source:position-lost", reason="the server purged transactions that were not yet copied"
        )


def file_stamp(params: MysqlParams, name: str, file: str) -> int:
    """When a binlog file was begun, by its first event; 0 where the server does not tell."""
    dump = Dump(params, f"{name} looks", file, START_OFFSET, ends=True)
    buffer = np.zeros(LOOK_BYTES, np.uint8)
    filled = 0
    end = time.monotonic() + LOOK_SECONDS
    try:
        while time.monotonic() < end and filled < LOOK_BYTES:
            filled += dump.receive(buffer.data[filled:], 1.0)
            found = _stamp_in(buffer[:filled].tobytes())
            if found:
                return found
    finally:
        dump.close()
    return 0


def _stamp_in(data: bytes) -> int:
    at = 0
    while at + 4 + 20 <= len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        if data[at + 4] == 0 and data[at + 9] == FORMAT_EVENT:
            return int(struct.unpack_from("<I", data, at + 5)[0])
        at += 4 + size
    return 0
