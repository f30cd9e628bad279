"""A connection on which a server sends its binlog: the session's settings, the server id, the command, and its bytes."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from typing import Any

import pymysql

from replicators.connectors.errors import ReplicationError
from replicators.sources.mysql.connections import Connection, connect, query, records, server_of
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.params import MysqlParams

COM_BINLOG_DUMP, COM_REGISTER_SLAVE = 18, 21
HEARTBEAT_SECONDS = 5
REPORT_HOST = "replicator"
FIRST_ID, LAST_ID = 1_000_000_000, 4_000_000_000


class Dump:
    """The stream of a binlog from (file, offset) on. For one thread."""

    def __init__(
        self, params: MysqlParams, name: str, file: str, offset: int, *, ends: bool = False
    ) -> None:
        self.params = params
        connection = connect(params)
        try:
            server = server_of(connection)
            self.has_checksums = _pin(connection, server.is_mariadb, name)
            number = server_id(connection, params, name)
            self._socket = _begin(connection, number, name, file, offset, ends)
        except (pymysql.Error, OSError) as err:
            _close(connection)
            raise translate(err, params) from err
        except BaseException:
            _close(connection)
            raise
        self._connection = connection

    def receive(self, into: memoryview, seconds: float) -> int:
        """Bytes into a buffer: how many, 0 where none came in time."""
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
    """Without a goodbye: the server is in the middle of sending."""
    with contextlib.suppress(Exception):
        connection._force_close()


def _pin(connection: Connection, is_mariadb: bool, name: str) -> bool:
    """Settings of the session that sends: checksums as in the file, heartbeats. Whether events carry checksums."""
    checksum = str(query(connection, "SELECT @@global.binlog_checksum")[0][0])
    period = HEARTBEAT_SECONDS * 1_000_000_000
    word = "master" if is_mariadb else "source"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET @{word}_binlog_checksum = @@global.binlog_checksum, @{word}_heartbeat_period = {period}"
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
    """The number to read under: the one chosen, or one made from the replicator's name that nobody else uses."""
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
    """The ids of other readers that told the server about themselves; our own readers tell a host name of ours."""
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            rows = records(connection, statement)
        except pymysql.Error:
            continue
        return {int(r["server_id"]) for r in rows if str(r.get("host", "")) != REPORT_HOST}
    return set()


def _begin(
    connection: Connection, number: int, name: str, file: str, offset: int, ends: bool
) -> Any:
    raw: Any = connection
    host = REPORT_HOST.encode()
    register = struct.pack("<IB", number, len(host)) + host + b"\0\0" + struct.pack("<HII", 0, 0, 0)
    raw._execute_command(COM_REGISTER_SLAVE, register)
    raw._read_packet()
    raw._execute_command(
        COM_BINLOG_DUMP, struct.pack("<IHI", offset, int(ends), number) + file.encode()
    )
    return raw._sock


def collations(connection: Connection) -> dict[int, str]:
    """The character set of every collation, by the numbers that the log uses."""
    found = {int(i): str(c) for i, c in query(connection, COLLATIONS) if i is not None}
    with contextlib.suppress(pymysql.Error):
        found |= {int(i): str(c) for i, c in query(connection, MARIADB_COLLATIONS)}
    return found


COLLATIONS = "SELECT id, character_set_name FROM information_schema.collations"
MARIADB_COLLATIONS = (
    "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability"
)
