"""Checks whether a server's log continues at a position (CORRECTNESS 26). Changes nothing."""

from __future__ import annotations

import struct
import time
from dataclasses import replace

import numpy as np

from replicators.connectors.model.positions import Position
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.connections import (
    Connection,
    Server,
    log_end,
    query,
    records,
    server_of,
)
from replicators.sources.mysql.dump import Dump
from replicators.sources.mysql.held import held
from replicators.sources.mysql.offsets import (
    Coordinates,
    MariadbGtids,
    file_number,
    is_within,
)
from replicators.sources.mysql.params import MysqlParams

FORMAT_EVENT = 15
START_OFFSET, LAST_OFFSET = 4, 0xFFFFFFFF
REFUSED = 0xFF
LOOK_BYTES = 1 << 12
LOOK_SECONDS = 10.0
LACKS = "the server lacks transactions that were already copied"
BEHIND = "the server's binlog ends before it, as after a restore"
PURGED = "the server purged transactions that were not yet copied"


def verify(
    connection: Connection, params: MysqlParams, name: str, position: Position | None
) -> None:
    """Raise `source:position-lost` if this server can't give the changes after `position`, and
    `source:setting` if it writes no log. Another server is accepted if the position's GTIDs show
    that the log continues there."""
    server = server_of(connection)
    end = log_end(connection, server)
    if end is None:
        raise ReplicationError(
            "source:setting", setting="log_bin", value="OFF", wanted="ON", statement="log_bin = ON"
        )
    if position is None:
        return
    known = Coordinates.of(position)
    is_other = (known.flavour, known.server) != (server.flavour, server.identity)
    if is_other or known.by_gtids:
        _verify_by_gtids(connection, params, name, server, known, end)
        if not is_other:
            _verify_own(connection, params, name, known)
        return
    _verify_file(connection, known)
    if known.gtids:
        _verify_gtids(connection, server, known, end)
    _verify_stamp(params, name, known)


def moved(known: Coordinates, server: Server) -> Coordinates:
    """Where a stream continues at another server. Prepared transactions lie elsewhere in its log,
    so their places are dropped. At their commit the tables get an error."""
    return Coordinates(
        server.flavour,
        server.identity,
        "",
        START_OFFSET,
        known.gtids,
        steps=known.steps,
        era=known.next_era(),
        by_gtids=True,
    )


def asked_for(start: Coordinates) -> Coordinates:
    """The place to request from the server: by GTIDs if the position says so, or if the offset
    exceeds what the command can hold. `source:position-lost` if there are none in that case."""
    if start.offset > LAST_OFFSET and not start.gtids:
        raise ReplicationError("source:position-lost", reason="it lies beyond 4 GiB of its file")
    if start.by_gtids or start.offset > LAST_OFFSET:
        return replace(start, file="", offset=START_OFFSET, by_gtids=True)
    return start


def counted(found: Coordinates, after: Position | None) -> Coordinates:
    """A place from the server, with the `era` of the stream that has reached `after`.
    `source:server-changed` if that stream is still at another server: the order of their places is
    unknown then."""
    if after is None:
        return found
    known = Coordinates.of(after)
    if (known.flavour, known.server) != (found.flavour, found.server):
        raise ReplicationError("source:server-changed")
    return replace(found, era=known.era)


def begun_again(found: Coordinates, lost: Position | None) -> Coordinates:
    """A place where a stream begins again after its position was lost. It is ordered behind every
    earlier position."""
    return found if lost is None else replace(found, era=Coordinates.of(lost).next_era())


def _verify_by_gtids(
    connection: Connection,
    params: MysqlParams,
    name: str,
    server: Server,
    known: Coordinates,
    end: Coordinates,
) -> None:
    """No copied transaction may be missing at the server, and the server may have purged none that
    is not copied."""
    if known.flavour != server.flavour or not known.gtids or not _has_gtids(connection, server):
        raise ReplicationError("source:position-lost", reason="this is another server")
    if not server.is_mariadb:
        _verify_gtids(connection, server, known, end)
        return
    state = str(query(connection, "SELECT @@global.gtid_binlog_state")[0][0] or "")
    if not MariadbGtids(known.gtids).is_in_state(state):
        raise ReplicationError("source:position-lost", reason=LACKS)
    # MariaDB tells what it has purged only when the log is requested.
    dump = Dump(
        params, f"{name} looks", "", START_OFFSET, ends=True, gtids=MariadbGtids(known.gtids)
    )
    buffer = np.zeros(LOOK_BYTES, np.uint8)
    filled = 0
    try:
        stop_at = time.monotonic() + LOOK_SECONDS
        while filled < 7 and time.monotonic() < stop_at:
            filled += dump.receive(buffer.data[filled:], 1.0)
    finally:
        dump.close()
    if buffer[4] == REFUSED:
        raise ReplicationError("source:position-lost", reason=PURGED)


def _verify_own(connection: Connection, params: MysqlParams, name: str, known: Coordinates) -> None:
    """Check the file of a server that was followed by GTIDs. A purged file is no loss. A file that
    the server has yet to write is one."""
    files = _files(connection)
    if known.file in files:
        _verify_stamp(params, name, known)
    elif file_number(known.file) > max(map(file_number, files)):
        raise ReplicationError("source:position-lost", reason=BEHIND)


def _has_gtids(connection: Connection, server: Server) -> bool:
    if server.is_mariadb:
        return True
    return str(query(connection, "SELECT @@global.gtid_mode")[0][0]) == "ON"


def _verify_stamp(params: MysqlParams, name: str, known: Coordinates) -> None:
    if known.stamp and known.stamp != file_stamp(params, name, known.file):
        raise ReplicationError("source:position-lost", reason="the server's binlog was reset")


def _files(connection: Connection) -> dict[str, int]:
    return {r["log_name"]: int(r["file_size"]) for r in records(connection, "SHOW BINARY LOGS")}


def _verify_file(connection: Connection, known: Coordinates) -> None:
    sizes = _files(connection)
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
    if not is_within(server.flavour, known.gtids, end.gtids) and not _has_logged(
        connection, server, known
    ):
        raise ReplicationError("source:position-lost", reason=LACKS)
    if server.is_mariadb:
        return
    purged = str(query(connection, "SELECT @@global.gtid_purged")[0][0] or "")
    if not is_within(server.flavour, purged, known.gtids):
        raise ReplicationError("source:position-lost", reason=PURGED)


def _has_logged(connection: Connection, server: Server, known: Coordinates) -> bool:
    """Whether the transactions missing in `gtid_executed` are still being committed: MySQL sends a
    transaction before it counts it."""
    if server.is_mariadb:
        return False
    waiting = [gtid for gtid, _ in held(connection)]
    executed = str(query(connection, "SELECT @@global.gtid_executed")[0][0] or "")
    return is_within(server.flavour, known.gtids, ",".join(filter(None, [executed, *waiting])))


def file_stamp(params: MysqlParams, name: str, file: str) -> int:
    """The time at which a binlog file was begun, from its first event. No answer does not mean
    another file: it raises `source:connection-lost`, and the file is asked for again."""
    # The stream itself uses a configured server id.
    other = replace(params, server_id=0)
    dump = Dump(other, f"{name} looks", file, START_OFFSET, ends=True)
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
    raise ReplicationError("source:connection-lost")


def _stamp_in(data: bytes) -> int:
    at = 0
    while at + 4 + 20 <= len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        if data[at + 4] == 0 and data[at + 9] == FORMAT_EVENT:
            return int(struct.unpack_from("<I", data, at + 5)[0])
        at += 4 + size
    return 0
