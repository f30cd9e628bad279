"""A connection on which a server sends its binlog: session settings, server id, dump command, and
the bytes received."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from typing import Any

import pymysql

from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.connections import Connection, connect, query, records, server_of
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.offsets import Gtids, MysqlGtids
from replicators.sources.mysql.params import MysqlParams

COM_BINLOG_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID = 18, 21, 30
THROUGH_GTIDS = 4
START_OFFSET = 4
HEARTBEAT_SECONDS = 5
REPORT_HOST = "replicator"
FIRST_ID, LAST_ID = 1_000_000_000, 4_000_000_000


class Dump:
    """The stream of a binlog from (file, offset) on, or, with `gtids`, of all transactions outside
    that set. `identity`: the only server accepted, "" for any. For one thread."""

    def __init__(
        self,
        params: MysqlParams,
        name: str,
        file: str,
        offset: int,
        *,
        ends: bool = False,
        gtids: Gtids | None = None,
        identity: str = "",
    ) -> None:
        self.params = params
        connection = connect(params)
        try:
            server = server_of(connection)
            if identity and server.identity != identity:
                raise ReplicationError("source:server-changed")
            self.has_checksums = _pin(connection, server.is_mariadb, name)
            number = server_id(connection, params, name)
            _register(connection, number)
            if isinstance(gtids, MysqlGtids):
                _send_gtids(connection, number, gtids, ends)
            else:
                if gtids is not None:
                    file, offset = "", START_OFFSET
                    _pin_gtids(connection, gtids)
                _send_place(connection, number, file, offset, ends)
            self._socket: Any = connection._sock
        except (pymysql.Error, OSError) as err:
            _close(connection)
            raise translate(err, params) from err
        except BaseException:
            _close(connection)
            raise
        self._connection = connection

    def receive(self, into: memoryview, seconds: float) -> int:
        """Receive bytes into a buffer. Returns their number, 0 if none came in time."""
        try:
            self._socket.settimeout(max(0.001, seconds))
            size = int(self._socket.recv_into(into))
        except TimeoutError:
            return 0
        except OSError as err:
            raise ReplicationError("source:connection-lost") from err
        if size == 0:
            raise ReplicationError("source:connection-lost")
        return size

    def close(self) -> None:
        """End the connection at once; safe to repeat."""
        _close(self._connection)


def _close(connection: Connection) -> None:
    """Close without the quit command: the server is in the middle of sending."""
    with contextlib.suppress(Exception):
        connection._force_close()


def _pin(connection: Connection, is_mariadb: bool, name: str) -> bool:
    """Set up the sending session: checksums as in the file, heartbeats. Returns whether events
    carry checksums."""
    checksum = str(query(connection, "SELECT @@global.binlog_checksum")[0][0])
    period = int(HEARTBEAT_SECONDS * 1_000_000_000)
    word = "master" if is_mariadb else "source"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET @{word}_binlog_checksum = @@global.binlog_checksum, @{word}_heartbeat_period = "
            f"{period}"
        )
        if is_mariadb:
            cursor.execute("SET @mariadb_slave_capability = 4")
        else:
            cursor.execute("SET @replica_uuid = %s, @slave_uuid = %s", (_uuid(name), _uuid(name)))
    return checksum.upper() == "CRC32"


def _uuid(name: str) -> str:
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def server_id(connection: Connection, params: MysqlParams, name: str) -> int:
    """The server id to read under: the configured one, or one derived from the replicator's name
    that no other reader uses."""
    own = int(query(connection, "SELECT @@global.server_id")[0][0])
    taken = {own, *_replicas(connection)}
    if params.server_id:
        if params.server_id in taken:
            raise ReplicationError("source:server-id-in-use", number=params.server_id)
        return params.server_id
    for attempt in range(100):
        digest = hashlib.sha256(f"{name}:{attempt}".encode()).digest()
        number = FIRST_ID + int.from_bytes(digest[:8], "big") % (LAST_ID - FIRST_ID)
        if number not in taken:
            return number
    raise ReplicationError("source:server-id-in-use", number=params.server_id)


def _replicas(connection: Connection) -> set[int]:
    """The ids of other readers registered at the server. Our own readers are left out: they report
    a host name of ours."""
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            rows = records(connection, statement)
        except pymysql.Error:
            continue
        return {int(r["server_id"]) for r in rows if str(r.get("host", "")) != REPORT_HOST}
    return set()


def _register(connection: Connection, number: int) -> None:
    raw: Any = connection
    host = REPORT_HOST.encode()
    register = struct.pack("<IB", number, len(host)) + host + b"\0\0" + struct.pack("<HII", 0, 0, 0)
    raw._execute_command(COM_REGISTER_SLAVE, register)
    raw._read_packet()


def _send_place(connection: Connection, number: int, file: str, offset: int, ends: bool) -> None:
    raw: Any = connection
    said = struct.pack("<IHI", offset, int(ends), number) + file.encode()
    raw._execute_command(COM_BINLOG_DUMP, said)


def _send_gtids(connection: Connection, number: int, gtids: MysqlGtids, ends: bool) -> None:
    """Send the dump command. MySQL leaves out the transactions of the set, wherever they are in its
    log."""
    raw: Any = connection
    known = gtids.encoded()
    flags = THROUGH_GTIDS | int(ends)
    said = struct.pack("<HIIQI", flags, number, 0, START_OFFSET, len(known)) + known
    raw._execute_command(COM_BINLOG_DUMP_GTID, said)


def _pin_gtids(connection: Connection, gtids: Gtids) -> None:
    """MariaDB continues after the last GTID of each domain. Strict mode: a GTID that it does not
    have is an error."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SET @slave_connect_state = %s, @slave_gtid_strict_mode = 1, "
            "@slave_gtid_ignore_duplicates = 0",
            (str(gtids),),
        )


def collations(connection: Connection) -> dict[int, str]:
    """The character set of every collation, by the numbers used in the log."""
    found = {int(i): str(c) for i, c in query(connection, COLLATIONS) if i is not None}
    with contextlib.suppress(pymysql.Error):
        found |= {int(i): str(c) for i, c in query(connection, MARIADB_COLLATIONS)}
    return found


COLLATIONS = "SELECT id, character_set_name FROM information_schema.collations"
MARIADB_COLLATIONS = (
    "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability"
)
