"""Reads a slot's stream as raw bytes; decodes no row."""

from __future__ import annotations

import array
import fcntl
import math
import select
import struct
import termios
import threading
import time
from collections.abc import Sequence

import numpy as np
import psycopg
from psycopg import pq

from replicators.connectors.closing import Closing
from replicators.connectors.log import LogBlock
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.postgresql import pump, slots, sql
from replicators.sources.postgresql.binary import BinaryGuard
from replicators.sources.postgresql.blocks import OPEN_BYTES, BlockCutter, origin_of
from replicators.sources.postgresql.connections import ReplicationConnection, connect
from replicators.sources.postgresql.control import LogControl
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.offsets import Identity, lsn_to_text
from replicators.sources.postgresql.params import ANY, PostgresqlParams

__all__ = ["LogControl", "LogReader"]

BLOCK_SECONDS = 0.05
LINGER_SECONDS = 0.002
GATHER_STEP_SECONDS, GATHER_STEPS = 0.003, 4
"""While more comes with every step, it is let come in: a reader that is woken by each of the
server's small sends slows the server."""
STATUS_SECONDS = 3.0
EPOCH_2000_MICROSECONDS = 946_684_800_000_000
STATUS = struct.Struct(">cQQQqB")
XLOG_DATA, RELATION, ORIGIN = b"wRO"
TEXT_UPTO: dict[str, int] = {}
"""By slot, the start of a transaction that must be read in text, though no table that is chosen now
needs it, and that was found out when a part of it was handed out already: whoever reads it next
begins in text."""


class LogReader(Closing):
    """A slot's stream; see `connectors.source.LogReader`. For one thread."""

    def __init__(self, params: PostgresqlParams, slot_name: str) -> None:
        self.params = params
        self.slot = slot_name
        self._skipped = params.skipped_origins
        self._link: ReplicationConnection | None = None
        self._cutter: BlockCutter | None = None
        self._guard: BinaryGuard | None = None
        self._is_binary = True
        self._identity = Identity("", 0)
        self._flushed = 0
        self._reported_at = 0.0
        self._began_at = 0.0
        self._has_come = False
        self._reading = threading.Lock()
        self._needs_text = False
        self._cell = np.zeros(1, np.int64)
        self._head = np.zeros(32, np.uint8)

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        """Without a position: make the publications, and drop a slot of that name (`snapshot_first`
        makes it). With one: verify that the log continues there."""
        link = ReplicationConnection(self.params)
        try:
            with connect(self.params) as connection:
                if position is None:
                    slots.drop_slot(connection, self.slot)
                    slots.publish(connection, self.slot, tables, wait)
                else:
                    slots.verify(connection, link, self.slot, position)
        except psycopg.Error as err:
            raise translate(err, self.params, slot=self.slot) from err
        finally:
            link.close()

    def start(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream. It is binary if every chosen column has a binary decoder and the log up
        to there did not need text."""
        self._guard = BinaryGuard(self.params, tables)
        is_binary = self._guard.allows_at_start()
        self._is_binary = is_binary and position.ordinal > TEXT_UPTO.get(self.slot, -1)
        self._flushed = position.ordinal
        self._open_stream(position.ordinal)
        self._cutter = BlockCutter(position.ordinal, self._identity, is_binary=self._is_binary)
        self._cutter.expect(tables)

    def _open_stream(self, lsn: int) -> None:
        self.close()
        link = ReplicationConnection(self.params)
        self._link = link
        self._identity = link.identity()
        names = ",".join(sql.name(n) for n in slots.publications(self.slot).values())
        text = (
            f"START_REPLICATION SLOT {sql.name(self.slot)} LOGICAL {lsn_to_text(lsn)} "
            f"(proto_version '1', publication_names {sql.literal(names)}, "
            f"binary '{str(self._is_binary).lower()}'{self._left_out(link)})"
        )
        result = link.pgconn.exec_(text.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            error = psycopg.errors.error_from_result(result)
            self.close()
            raise translate(error, self.params, slot=self.slot) from error
        self._send_status()

    def _left_out(self, link: ReplicationConnection) -> str:
        """From PostgreSQL 16 on, the server itself leaves out what has an origin."""
        is_told = ANY in self._skipped and link.pgconn.server_version >= 160000
        return ", origin 'none'" if is_told else ""

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        """The next block; see `LogBlock` for where blocks end."""
        cutter = self._cutter
        assert cutter is not None, "start comes first"
        with self._reading:
            if self._needs_text and self._is_binary:
                self._change_to_text(cutter)
            return self._read(cutter, wait_seconds, max_bytes)

    def _read(self, cutter: BlockCutter, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        deadline = time.monotonic() + wait_seconds
        while True:
            if cutter.ready:
                return cutter.ready.popleft()
            self._began_at = self._began_at or time.monotonic()
            cutter.state[pump.OPEN_LIMIT] = min(OPEN_BYTES, max_bytes)
            self._pump(cutter)
            now = time.monotonic()
            if now - self._reported_at > STATUS_SECONDS:
                self._send_status()
            if cutter.ready:
                self._began_at = 0.0
                continue
            if not self._await(cutter, now, deadline):
                return None

    def _await(self, cutter: BlockCutter, now: float, deadline: float) -> bool:
        """Wait for the socket; False once the time is over."""
        if cutter.has_closed:
            until = self._began_at + BLOCK_SECONDS
            if not cutter.is_open:
                until = min(until, now + LINGER_SECONDS)
            if now >= until or not self._wait_readable(until - now):
                self._began_at = 0.0
                cutter.emit_closed()
            return True
        self._began_at = 0.0
        if now >= deadline:
            return False
        self._wait_readable(min(deadline - now, STATUS_SECONDS))
        return True

    def _wait_readable(self, seconds: float) -> bool:
        pgconn = self._pgconn
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN)
        if self._has_come and not poll.poll(0):
            self._gather(seconds)
        self._has_come = bool(poll.poll(max(0, math.ceil(seconds * 1000))))
        if not self._has_come:
            return False
        try:
            pgconn.consume_input()
        except psycopg.Error as err:
            raise ReplicationError("source:connection-lost") from err
        return True

    def _gather(self, seconds: float) -> None:
        """Wait while the socket's buffer keeps filling, up to this time."""
        waiting, cell = -1, array.array("i", [0])
        for _ in range(min(GATHER_STEPS, math.ceil(seconds / GATHER_STEP_SECONDS))):
            fcntl.ioctl(self._pgconn.socket, termios.FIONREAD, cell)
            if cell[0] <= waiting:
                return
            waiting = cell[0]
            time.sleep(GATHER_STEP_SECONDS)

    @property
    def _pgconn(self) -> pq.abc.PGconn:
        if self._link is None:
            raise ReplicationError("source:connection-lost")
        return self._link.pgconn

    def _pump(self, cutter: BlockCutter) -> None:
        """Take messages until a block is ready or there is nothing to read."""
        take = self._take_compiled if pump.load() else self._take_plain
        pgconn = self._pgconn
        while not cutter.ready and self._pgconn is pgconn:
            todo, size = take(cutter)
            if todo == pump.IDLE:
                return
            if todo == pump.BLOCK:
                cutter.emit_closed()
            elif todo == pump.OPEN:
                cutter.emit_open()
            elif todo == pump.GROW:
                cutter.grow(int(cutter.state[pump.HELD_SIZE]))
            elif todo == pump.REPLY:
                self._send_status()
                cutter.state[pump.WANTS_REPLY] = 0
            elif todo == pump.ENDED:
                self._raise_ended()
            else:
                self._other(cutter.placed(size), cutter)

    def _take_compiled(self, cutter: BlockCutter) -> tuple[int, int]:
        state = cutter.state
        address = self._pgconn.pgconn_ptr  # type: ignore[attr-defined]
        todo = pump.run(address, state, cutter.buffer, self._cell, self._head)
        return todo, int(state[pump.HELD])

    def _take_plain(self, cutter: BlockCutter) -> tuple[int, int]:
        """Do the same through psycopg, where its libpq can't be found."""
        pgconn = self._pgconn
        while True:
            size, message = pgconn.get_copy_data(1)
            if size <= 0 or message is None:
                return (pump.ENDED if size else pump.IDLE), 0
            if message[0] != XLOG_DATA:
                head = np.frombuffer(message, np.uint8)
                if pump.keepalive(cutter.state, head) != pump.IDLE:
                    return pump.REPLY, 0
                continue
            todo = cutter.place(message[pump.HEAD :])
            if todo != pump.IDLE:
                return todo, size - pump.HEAD

    def _other(self, message: bytes, cutter: BlockCutter) -> None:
        if message[0] == RELATION:
            self._relation(message, cutter)
        elif message[0] == ORIGIN:
            if self._skipped & {ANY, origin_of(message)}:
                cutter.skip()
        else:
            cutter.append(message)

    def _relation(self, message: bytes, cutter: BlockCutter) -> None:
        guard = self._guard
        assert guard is not None
        if self._is_binary and not cutter.knows(message) and not guard.allows(message):
            self._change_to_text(cutter)
        else:
            cutter.relation(message)

    def _change_to_text(self, cutter: BlockCutter) -> None:
        """Read the open transaction again, in text. If a part of it was handed out, the run has to
        begin again."""
        if cutter.was_open_sent:
            TEXT_UPTO[self.slot] = cutter.closed_at
            raise ReplicationError("source:connection-lost")
        self._is_binary = False
        cutter.restart(is_binary=False)
        self._open_stream(cutter.closed_at)

    def _raise_ended(self) -> None:
        result = self._pgconn.get_result()
        if result is None or result.status != pq.ExecStatus.FATAL_ERROR:
            raise ReplicationError("source:connection-lost")
        error = psycopg.errors.error_from_result(result)
        found = translate(error, self.params, slot=self.slot)
        if isinstance(found, ReplicationError) and found.code == "internal:unexpected":
            found = ReplicationError("source:connection-lost")
        raise found from error

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """Take new descriptions of the tables; the publications decide which tables come. First
        Relation messages are compared with these schemas. A column that was left out so far and has
        no binary form switches the stream to text before the next block: its table's Relation
        message came long ago and does not come again."""
        with self._reading:
            if self._cutter is not None and self._guard is not None:
                self._cutter.expect(tables)
                self._needs_text = not self._guard.follow(tables)

    def acknowledge(self, position: Position) -> None:
        """Everything up to `position` is durable: the server may discard it."""
        self._flushed = max(self._flushed, position.ordinal)
        if self._link is not None:
            self._send_status()

    def _send_status(self) -> None:
        clock = int(time.time() * 1e6) - EPOCH_2000_MICROSECONDS
        at = self._flushed
        pgconn = self._pgconn
        try:
            pgconn.put_copy_data(STATUS.pack(b"r", at, at, at, clock, 0))
            while pgconn.flush():
                poll = select.poll()
                poll.register(pgconn.socket, select.POLLOUT)
                poll.poll(1000)
        except psycopg.Error as err:
            raise ReplicationError("source:connection-lost") from err
        self._reported_at = time.monotonic()

    def idle_position(self) -> Position | None:
        """The log end of the last keepalive, if `read` returned everything before it."""
        cutter = self._cutter
        if cutter is None or cutter.is_open or cutter.has_closed or cutter.ready:
            return None
        end = max(int(cutter.state[pump.IDLE_END]), cutter.closed_at)
        return self._identity.position(end)

    def close(self) -> None:
        """End the stream; safe to repeat."""
        if self._link is not None:
            self._link.close()
            self._link = None
