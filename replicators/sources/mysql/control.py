"""Status of the log, on an ordinary connection; never reads the log, and creates nothing at the
server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.control import LogStatus
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.mysql.connections import (
    Connection,
    connect,
    log_end,
    query,
    records,
    server_of,
)
from replicators.sources.mysql.continuity import counted, file_stamp
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.offsets import Coordinates
from replicators.sources.mysql.params import MysqlParams

T = TypeVar("T")


class LogControl(Closing):
    """See `connectors.source.LogControl`. It connects when first used; for one thread."""

    def __init__(self, params: MysqlParams, name: str, after: Position | None = None) -> None:
        self.params = params
        self.name = name
        self._after = after
        self._connection: Connection | None = None
        self._began: tuple[str, float] = ("", 0.0)

    def _ask(self, act: Callable[[Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = connect(self.params)
            return act(self._connection)
        except (pymysql.Error, OSError) as err:
            self.close()
            raise translate(err, self.params) from err

    def heartbeat(self) -> int:
        """The current end of the log. Writes nothing: everything committed before this call lies
        before that place."""
        return counted(self._ask(_end), self._after).value

    def status(self, reached: Position | None = None) -> LogStatus:
        """The server's clock and its log's end. The server keeps its log by time, whatever we have
        read."""

        def look(connection: Connection) -> LogStatus:
            said = query(connection, "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0]
            now = float(said) if said else time.time()
            end = _end(connection)
            return LogStatus(
                is_active=True,
                hours_left=self._hours_left(connection, reached, end, now),
                server_time=now,
                end=counted(end, self._after).value,
            )

        return self._ask(look)

    def _hours_left(
        self, connection: Connection, reached: Position | None, end: Coordinates, now: float
    ) -> float | None:
        """The hours for which the file being read is still kept. The server removes a file some
        time after its last write, which was when the next file began."""
        kept = retention_hours(connection)
        if kept is None or reached is None:
            return kept
        known = Coordinates.of(reached)
        if known.server != end.server or known.file in ("", end.file):
            return kept
        files = [str(r["log_name"]) for r in records(connection, "SHOW BINARY LOGS")]
        if known.file not in files[:-1]:
            return kept if known.by_gtids or known.file in files else 0.0
        age = now - self._begin_of(files[files.index(known.file) + 1])
        return max(0.0, kept - age / 3600)

    def _begin_of(self, file: str) -> float:
        if self._began[0] != file:
            self._began = (file, file_stamp(self.params, self.name, file))
        return self._began[1]

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """Does nothing: the log holds every table, and `follow` tells the reader."""
        return ()

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Does nothing: the log holds every table."""

    def drop(self) -> None:
        """Nothing was created at the server. It must be reachable all the same, so that a delete
        never claims success at a server that it did not reach."""
        self._ask(lambda connection: connection.ping())

    def drop_statements(self) -> list[str]:
        """None: nothing was created at the server."""
        return ["-- Nothing to remove: reading the binlog leaves nothing behind."]

    def close(self) -> None:
        """End the connection; safe to repeat."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()


def _end(connection: Connection) -> Coordinates:
    end = log_end(connection, server_of(connection))
    if end is None:
        raise ReplicationError(
            "source:setting", setting="log_bin", value="OFF", wanted="ON", statement="log_bin = ON"
        )
    return end


def retention_hours(connection: Connection) -> float | None:
    """The hours for which the server keeps its binlog; None: no limit."""
    values: dict[str, Any] = dict(
        query(
            connection,
            "SHOW GLOBAL VARIABLES WHERE variable_name IN"
            " ('binlog_expire_logs_seconds', 'expire_logs_days', 'binlog_expire_logs_auto_purge')",
        )
    )
    if str(values.get("binlog_expire_logs_auto_purge", "ON")).upper() in ("OFF", "0"):
        return None
    seconds = float(values.get("binlog_expire_logs_seconds") or 0)
    seconds = seconds or 86400 * float(values.get("expire_logs_days") or 0)
    return seconds / 3600 if seconds else None
