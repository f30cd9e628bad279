"""Reads a slot's stream as raw bytes, and asks small questions beside it; decodes no row."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import psycopg
from psycopg import pq

from replicators.connectors.errors import ReplicationError
from replicators.connectors.offsets import Position
from replicators.connectors.schema import TableSchema
from replicators.connectors.source import LogBlock
from replicators.sources.postgresql import slots, sql
from replicators.sources.postgresql.binary import BinaryGuard
from replicators.sources.postgresql.blocks import OPEN_BYTES, BlockCutter
from replicators.sources.postgresql.connections import ReplicationConnection, connect
from replicators.sources.postgresql.control import LogControl
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.offsets import Identity, lsn_to_text
from replicators.sources.postgresql.params import PostgresqlParams

__all__ = ["LogControl", "LogReader"]

BLOCK_SECONDS = 0.05
LINGER_SECONDS = 0.002
STATUS_SECONDS = 3.0
EPOCH_2000_MICROSECONDS = 946_684_800_000_000
KEEPALIVE = struct.Struct(">xQqB")
STATUS = struct.Struct(">cQQQqB")
PAYLOAD = 25


class LogReader:
    """A slot's stream; see `connectors.source.LogReader`. For one thread."""

    def __init__(self, params: PostgresqlParams, slot_name: str) -> None:
        self.params = params
        self.slot = slot_name
        self._link: ReplicationConnection | None = None
        self._cutter: BlockCutter | None = None
        self._guard: BinaryGuard | None = None
        self._is_binary = True
        self._identity = Identity("", 0)
        self._flushed = 0
        self._told_at = 0.0
        self._keepalive_end = 0
        self._began_at = 0.0

    def prepare(self, tables: Sequence[TableSchema], position: Position | None) -> None:
        """Without a position: publications, and no slot of that name (`snapshot_first` makes it). With one: verify."""
        link = ReplicationConnection(self.params)
        try:
            with connect(self.params) as connection:
                if position is None:
                    slots.drop_slot(connection, self.slot)
                    slots.publish(connection, self.slot, tables)
                else:
                    slots.verify(connection, link, self.slot, position)
        except psycopg.Error as err:
            raise translate(err, self.params, slot=self.slot) from err
        finally:
            link.close()

    def start(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream: binary where every chosen column has a binary decoder, text otherwise."""
        self._guard = BinaryGuard(self.params, tables)
        self._is_binary = self._guard.allows_at_start()
        self._flushed = position.value
        self._keepalive_end = 0
        self._open_stream(position.value)
        self._cutter = BlockCutter(position.value, self._identity, is_binary=self._is_binary)

    def _open_stream(self, lsn: int) -> None:
        self.close()
        link = ReplicationConnection(self.params)
        self._link = link
        self._identity = link.identity()
        names = ",".join(sql.name(n) for n in slots.publications(self.slot).values())
        text = (
            f"START_REPLICATION SLOT {sql.name(self.slot)} LOGICAL {lsn_to_text(lsn)} "
            f"(proto_version '1', publication_names {sql.literal(names)}, "
            f"binary '{str(self._is_binary).lower()}')"
        )
        result = link.pgconn.exec_(text.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            error = psycopg.errors.error_from_result(result)
            raise translate(error, self.params, slot=self.slot) from error
        self._send_status()

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        """The next block; see `LogBlock` for where blocks end."""
        cutter = self._cutter
        assert cutter is not None, "start comes first"
        deadline = time.monotonic() + wait_seconds
        while True:
            if cutter.ready:
                return cutter.ready.popleft()
            self._began_at = self._began_at or time.monotonic()
            self._pump(cutter, min(OPEN_BYTES, max_bytes))
            now = time.monotonic()
            if now - self._told_at > STATUS_SECONDS:
                self._send_status()
            if cutter.ready:
                self._began_at = 0.0
                continue
            if not self._await(cutter, now, deadline):
                return None

    def _await(self, cutter: BlockCutter, now: float, deadline: float) -> bool:
        """Wait for the socket; False where the time is over."""
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
        if not select.select([pgconn.socket], [], [], max(seconds, 0.0))[0]:
            return False
        self._consume()
        return True

    def _consume(self) -> None:
        try:
            self._pgconn.consume_input()
        except psycopg.Error as err:
            raise ReplicationError("source:connection-lost") from err

    @property
    def _pgconn(self) -> pq.abc.PGconn:
        if self._link is None:
            raise ReplicationError("source:connection-lost")
        return self._link.pgconn

    def _pump(self, cutter: BlockCutter, open_bytes: int) -> None:
        """Take messages until a block is ready or nothing is left to read. The hot loop: rows take the short way."""
        pgconn = self._pgconn
        take = pgconn.get_copy_data
        pack = struct.Struct("<I").pack
        buffer, ready = cutter.buffer, cutter.ready
        rows = 0
        while True:
            size, message = take(1)
            if size <= 0 or message is None:
                cutter.messages += rows
                if size < 0:
                    self._raise_ended()
                return
            if message[0] != 119:
                self._keepalive(bytes(message), cutter)
                continue
            kind = message[PAYLOAD]
            if kind == 73 or kind == 85 or kind == 68:
                if not cutter.is_skipping:
                    buffer += pack(size - PAYLOAD)
                    buffer += message[PAYLOAD:]
                    rows += 1
                    if len(buffer) < open_bytes:
                        continue
                    cutter.messages += rows
                    rows = 0
                    cutter.emit_open()
                    return
                continue
            cutter.messages += rows
            rows = 0
            self._other(kind, bytes(message[PAYLOAD:]), cutter)
            if ready or self._pgconn is not pgconn:
                return

    def _other(self, kind: int, message: bytes, cutter: BlockCutter) -> None:
        if kind == 66:
            cutter.begin(message)
        elif kind == 67:
            cutter.commit(message)
        elif kind == 82:
            self._relation(message, cutter)
        elif not cutter.is_skipping:
            cutter.append(message)

    def _relation(self, message: bytes, cutter: BlockCutter) -> None:
        guard = self._guard
        assert guard is not None
        if self._is_binary and not cutter.knows(message) and not guard.allows(message):
            self._change_to_text(cutter)
        else:
            cutter.relation(message)

    def _change_to_text(self, cutter: BlockCutter) -> None:
        """Read the open transaction again, in text. Where a part of it was handed out, the run has to begin again."""
        if cutter.was_open_sent:
            raise ReplicationError("source:connection-lost")
        self._is_binary = False
        cutter.restart(is_binary=False)
        self._open_stream(cutter.closed_at)

    def _keepalive(self, message: bytes, cutter: BlockCutter) -> None:
        end, _, wants_reply = KEEPALIVE.unpack_from(message)
        cutter.server_end = max(cutter.server_end, end)
        if not cutter.is_open:
            self._keepalive_end = max(self._keepalive_end, end)
        if wants_reply:
            self._send_status()

    def _raise_ended(self) -> None:
        result = self._pgconn.get_result()
        if result is None or result.status != pq.ExecStatus.FATAL_ERROR:
            raise ReplicationError("source:connection-lost")
        error = psycopg.errors.error_from_result(result)
        found = translate(error, self.params, slot=self.slot)
        if isinstance(found, ReplicationError) and found.code == "internal:unexpected":
            found = ReplicationError("source:connection-lost")
        raise found from error

    def acknowledge(self, position: Position) -> None:
        """Everything up to `position` is durable: the server may forget it."""
        self._flushed = max(self._flushed, position.value)
        if self._link is not None:
            self._send_status()

    def _send_status(self) -> None:
        clock = int(time.time() * 1e6) - EPOCH_2000_MICROSECONDS
        at = self._flushed
        pgconn = self._pgconn
        try:
            pgconn.put_copy_data(STATUS.pack(b"r", at, at, at, clock, 0))
            while pgconn.flush():
                select.select([], [pgconn.socket], [], 1.0)
        except psycopg.Error as err:
            raise ReplicationError("source:connection-lost") from err
        self._told_at = time.monotonic()

    def idle_position(self) -> Position | None:
        """The last keepalive's log end, where everything before it was returned from `read`."""
        cutter = self._cutter
        if cutter is None or cutter.is_open or cutter.has_closed or cutter.ready:
            return None
        end = max(self._keepalive_end, cutter.closed_at)
        return self._identity.position(end)

    def close(self) -> None:
        """End the stream; safe to repeat."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
