"""Heartbeat, status and publications, on an ordinary connection; never reads the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from replicators.connectors.closing import Closing
from replicators.connectors.control import LogStatus
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.postgresql import slots
from replicators.sources.postgresql.connections import connect
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.offsets import lsn_to_int
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.rates import LogRate

T = TypeVar("T")
Connection = psycopg.Connection[Any]

UNREADABLE = """
SELECT c.oid::bigint FROM pg_class c
WHERE c.oid = ANY(%s::oid[]) AND NOT (has_schema_privilege(c.relnamespace, 'USAGE')
    AND has_table_privilege(c.oid, 'SELECT'))
"""
STATUS = """
SELECT coalesce(pg_current_wal_lsn() - s.restart_lsn, 0)::bigint, coalesce(s.active, false),
       s.safe_wal_size, extract(epoch FROM clock_timestamp())::float8,
       (pg_current_wal_lsn() - '0/0')::bigint
FROM (SELECT) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s
"""


class LogControl(Closing):
    """See `connectors.source.LogControl`. It connects when first used, and again after a lost
    connection."""

    def __init__(self, params: PostgresqlParams, slot_name: str) -> None:
        self.params = params
        self.slot = slot_name
        self._connection: Connection | None = None
        self._rate = LogRate()

    def _ask(self, act: Callable[[Connection], T]) -> T:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.params)
        try:
            return act(self._connection)
        except psycopg.Error as err:
            self.close()
            raise translate(err, self.params, slot=self.slot) from err

    def heartbeat(self) -> int:
        """Commit a small message to the log. Everything committed before this call lies before the
        returned position; the stream has been read up to it once a block's or the idle position is
        at or past it."""
        row = self._ask(
            lambda c: c.execute(
                "SELECT pg_logical_emit_message(true, 'replicator', 'heartbeat')::text"
            ).fetchone()
        )
        return lsn_to_int(row[0]) if row else 0

    def status(self, reached: Position | None = None) -> LogStatus:
        """Bytes that the server keeps for the slot, the hours until the slot is lost at the rate of
        the last minutes, the server's clock and its log's end. The server itself knows the slot's
        position."""
        row = self._ask(lambda c: c.execute(STATUS, [self.slot]).fetchone())
        assert row is not None
        retained, is_active, safe, clock, end = row
        self._rate.add(clock, end)
        rate, hours = self._rate.bytes_per_second, None
        if safe is not None and rate:
            hours = max(0.0, safe / rate / 3600)
        is_limited = safe is not None
        return LogStatus(max(retained, 0), is_active, hours, clock, end, is_limited, rate)

    def add_tables(
        self, tables: Sequence[TableSchema], wait: SnapshotWait | None = None
    ) -> Sequence[TableSchema]:
        """Publish these tables too. Returns those that were not published before."""
        return self._ask(lambda c: slots.publish(c, self.slot, tables, wait))

    def remove_tables(self, tables: Sequence[TableSchema]) -> None:
        """Stop publishing these tables."""
        self._ask(lambda c: slots.unpublish(c, self.slot, tables))

    def unpublished(self, tables: Sequence[TableSchema]) -> list[TableSchema]:
        """Those of `tables` that the stream does not carry. A table was dropped and created again,
        or somebody took it out of the publication and may have put it back since."""
        return self._ask(lambda c: slots.unpublished(c, self.slot, tables))

    def members(self, tables: Sequence[TableSchema]) -> dict[TableId, int]:
        """Each table's number in the stream (`TableSchema.member`)."""
        return self._ask(lambda c: slots.memberships(c, self.slot, tables))

    def refused(self, tables: Sequence[TableSchema]) -> dict[TableId, str]:
        """Those of `tables` that can't be followed, because of a partition or because they are
        partitions (see `slots.refusing`), each with the statement that mends it. Also unpublishes
        the tables to which their owner could not write otherwise (`slots.release`)."""
        self._ask(lambda c: slots.release(c, self.slot))
        return self._ask(lambda c: slots.refused(c, self.slot, tables))

    def unreadable(self, tables: Sequence[TableSchema]) -> list[TableId]:
        """Those of `tables` that our user may not read. The log is sent to it all the same."""
        names = {t.native_id: t.id for t in tables}
        rows = self._ask(lambda c: c.execute(UNREADABLE, [list(names)]).fetchall())
        return [names[number] for (number,) in rows]

    def drop(self) -> None:
        """Drop slot and publications; end the connection that reads the slot. If the database no
        longer exists, there is nothing to drop."""
        try:
            self._ask(lambda c: slots.drop_slot(c, self.slot))
            self._ask(lambda c: slots.drop_publications(c, self.slot))
        except ReplicationError as err:
            if err.code != "source:database-missing":
                raise

    def drop_statements(self) -> list[str]:
        """The statements that do the same as `drop`."""
        return slots.drop_statements(self.slot)

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
