"""Tells the log's end once everything before it can be read. A server writes a transaction to its
log first and shows it to others later: after its disk, after `binlog_group_commit_sync_delay`,
after a semi-synchronous replica. A copy that began in between would lack rows that the later log
does not bring (CORRECTNESS 19). Takes no lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import OpenTransaction, SnapshotWait
from replicators.sources.mysql.connections import Connection, log_end, query, server_of
from replicators.sources.mysql.exact import begin_snapshot
from replicators.sources.mysql.held import Held, held
from replicators.sources.mysql.log import SILENT_SECONDS, LogReader
from replicators.sources.mysql.offsets import Coordinates, MysqlGtids, file_number, value_at
from replicators.sources.mysql.params import MysqlParams

POLL_SECONDS = 0.005
SAY_SECONDS = 1.0
LIMIT_SECONDS = 30.0
DISK_SECONDS = 0.1
READ_BYTES = 1 << 20


def visible_end(
    connection: Connection, params: MysqlParams, name: str, wait: SnapshotWait | None = None
) -> Coordinates | None:
    """The log's end of a moment ago, with the GTIDs up to there; None if the server writes no log.
    When this returns, every transaction before that end can be read. It usually waits for a few
    milliseconds at most. `wait` or our limit may give up (`source:snapshot-waits`)."""
    server = server_of(connection)
    end = log_end(connection, server)
    if end is None:
        return None
    if server.is_mariadb:
        _until(lambda: _is_in_snapshot(connection, end), list, wait)
        query(connection, "ROLLBACK")
        return end
    if query(connection, "SELECT @@global.gtid_mode")[0][0] != "ON":
        _until(_delays(connection), list, wait)
        return end
    before = held(connection)
    _until(lambda: not before & held(connection), lambda: _holders(before & held(connection)), wait)
    later = log_end(connection, server)
    if later is None:
        return None
    # All visible GTIDs, without those that the log has behind the end.
    gtids = MysqlGtids(later.gtids).without(_between(end, later, params, name))
    return replace(end, gtids=str(gtids))


def _holders(found: Held) -> list[OpenTransaction]:
    return [OpenTransaction(process) for process in sorted({p for _, p in found})]


def _until(
    holds: Callable[[], bool],
    holders: Callable[[], Sequence[OpenTransaction]],
    wait: SnapshotWait | None,
) -> None:
    began = time.monotonic()
    say_at = SAY_SECONDS
    while not holds():
        waited = time.monotonic() - began
        if wait is None and waited > LIMIT_SECONDS:
            holder = ", ".join(map(str, holders())) or "a transaction that is being committed"
            raise ReplicationError("source:snapshot-waits", seconds=f"{waited:.0f}", holder=holder)
        if wait is not None and waited >= say_at:
            wait(waited, holders())
            say_at = waited + SAY_SECONDS
        time.sleep(POLL_SECONDS)


def _is_in_snapshot(connection: Connection, end: Coordinates) -> bool:
    file, offset = begin_snapshot(connection)
    return value_at(file_number(file), offset) >= end.value


def _delays(connection: Connection) -> Callable[[], bool]:
    """A check for MySQL without GTIDs, which does not tell what is being committed. It holds once
    the time is over for which the server's settings may hold a transaction back, and a little more
    for its disk."""
    delay = int(query(connection, "SELECT @@global.binlog_group_commit_sync_delay")[0][0]) / 1e6
    limits = query(connection, "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_timeout'")
    limit = max((int(value) / 1e3 for _, value in limits), default=0.0)
    began = time.monotonic()

    def holds() -> bool:
        waited = time.monotonic() - began
        if waited < DISK_SECONDS + delay:
            return False
        if waited >= DISK_SECONDS + delay + limit:
            return True
        found = query(connection, "SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_%_wait_sessions'")
        return all(int(value) == 0 for _, value in found)

    return holds


def _between(end: Coordinates, later: Coordinates, params: MysqlParams, name: str) -> MysqlGtids:
    """The GTIDs between two places of the log."""
    if end.value == later.value:
        return MysqlGtids()
    stop_at = time.monotonic() + SILENT_SECONDS
    # The stream itself uses a configured server id.
    with LogReader(replace(params, server_id=0), f"{name} looks") as reader:
        reader.start(replace(end, gtids="").position(), ())
        while time.monotonic() < stop_at:
            found = reader.idle_position()
            if found is not None and found.ordinal >= later.value:
                return MysqlGtids(Coordinates.of(found).gtids)
            reader.read(wait_seconds=0.1, max_bytes=READ_BYTES)
    raise ReplicationError("source:connection-lost")
