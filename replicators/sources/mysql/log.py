"""Reads a server's binlog as raw bytes, as a replica does; decodes no row."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.log import LogBlock
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import SnapshotWait
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.blocks import OPEN_BYTES, BlockCutter
from replicators.sources.mysql.cascades import unlogged_keys
from replicators.sources.mysql.connections import connect, query, server_of
from replicators.sources.mysql.continuity import asked_for, moved, verify
from replicators.sources.mysql.control import LogControl
from replicators.sources.mysql.dump import Dump, collations
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.offsets import Coordinates, gtids_of
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.prepared import Prepared

__all__ = ["LogControl", "LogReader"]

BLOCK_SECONDS = 0.05
LINGER_SECONDS = 0.002
INPUT_BYTES = 4 << 20
SILENT_SECONDS = 30.0
MAX_PACKET = 0xFFFFFF


class LogReader(Closing):
    """The binlog's stream; see `connectors.source.LogReader`. For one thread, except `follow`,
    which another thread may call."""

    def __init__(self, params: MysqlParams, name: str) -> None:
        self.params = params
        self.name = name
        self._dump: Dump | None = None
        self._cutter: BlockCutter | None = None
        self._input = np.zeros(INPUT_BYTES, np.uint8)
        self._began_at = 0.0
        self._heard_at = 0.0
        self._followed: frozenset[Any] | None = None
        self.lost: Position | None = None
        self._verified = ""

    def prepare(
        self,
        tables: Sequence[TableSchema],
        position: Position | None,
        wait: SnapshotWait | None = None,
    ) -> None:
        """With a position: verify that the log continues there. Nothing is created at the
        server."""
        try:
            with connect(self.params) as connection:
                verify(connection, self.params, self.name, position)
                # Without a position, no server was compared with it.
                self._verified = server_of(connection).identity if position else ""
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params) from err
        except ReplicationError as err:
            if err.code == "source:position-lost":
                self.lost = position
            raise

    def start(self, position: Position, tables: Sequence[TableSchema]) -> None:
        """Open the stream after `position`. At another server it continues by GTIDs, if `prepare`
        has checked them."""
        self._open(Coordinates.of(position), (t.id for t in tables))

    def _open(self, start: Coordinates, tables: Iterable[TableId], sought: str = "") -> None:
        self.close()
        try:
            with connect(self.params) as connection:
                server = server_of(connection)
                constants = {
                    "charsets": collations(connection),
                    "cascades": unlogged_keys(connection, server),
                    "lowers": query(connection, "SELECT @@lower_case_table_names")[0][0] != 0,
                }
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params) from err
        if start.server != server.identity:
            if server.identity != self._verified:
                raise ReplicationError("source:server-changed")
            start = moved(start, server)
        start = asked_for(start)
        gtids = gtids_of(start.flavour, start.gtids) if start.by_gtids else None
        self._cutter = BlockCutter(start, constants, tables, sought)
        self._dump = Dump(
            self.params, self.name, start.file, start.offset, gtids=gtids, identity=start.server
        )
        self._cutter.state[k.P_HAS_CRC] = self._dump.has_checksums
        self._heard_at = time.monotonic()

    def follow(self, tables: Sequence[TableSchema]) -> None:
        """Carry these tables from now on: everything read from the server after this call holds
        their changes."""
        self._followed = frozenset(t.id for t in tables)

    def read(self, *, wait_seconds: float, max_bytes: int) -> LogBlock | None:
        """The next block; see `LogBlock` for where blocks end."""
        cutter = self._cutter
        assert cutter is not None, "start comes first"
        deadline = time.monotonic() + wait_seconds
        cutter.limit_open(min(OPEN_BYTES, max_bytes))
        while True:
            if cutter.ready:
                return cutter.ready.popleft()
            self._began_at = self._began_at or time.monotonic()
            if self._followed is not None:
                followed, self._followed = self._followed, None
                cutter.follow(followed)
            self._pump(cutter)
            if cutter.ready:
                self._began_at = 0.0
                continue
            if not self._await(cutter, deadline):
                return None

    def _await(self, cutter: BlockCutter, deadline: float) -> bool:
        """Wait for bytes; False once the time is over."""
        now = time.monotonic()
        if cutter.has_closed:
            until = self._began_at + BLOCK_SECONDS
            if not cutter.is_open:
                until = min(until, now + LINGER_SECONDS)
            if now >= until or not self._receive(cutter, until - now):
                self._began_at = 0.0
                cutter.emit_closed()
            return True
        self._began_at = 0.0
        if now >= deadline:
            return False
        self._receive(cutter, deadline - now)
        return True

    def _receive(self, cutter: BlockCutter, seconds: float) -> bool:
        """Receive bytes behind those that wait; False if none came in time."""
        state = cutter.state
        read, filled = int(state[k.P_READ]), int(state[k.P_FILLED])
        if read:
            self._input[: filled - read] = self._input[read:filled].copy()
            filled -= read
            state[k.P_READ], state[k.P_FILLED] = 0, filled
        if filled == len(self._input):
            larger = np.zeros(2 * filled, np.uint8)
            larger[:filled] = self._input
            self._input = larger
        if self._dump is None:
            raise ReplicationError("source:connection-lost")
        size = self._dump.receive(self._input.data[filled:], seconds)
        now = time.monotonic()
        if size:
            self._heard_at = now
            state[k.P_FILLED] = filled + size
        elif now - self._heard_at > SILENT_SECONDS:
            raise ReplicationError("source:connection-lost")
        return size > 0

    def _pump(self, cutter: BlockCutter) -> None:
        """Take packets until a block is ready or there is nothing to read."""
        state = cutter.state
        while not cutter.ready:
            todo = k.pump(
                self._input, state, cutter.buffer, cutter.runs, cutter.ids, cutter.wanted,
                cutter.known_at, cutter.known_size, cutter.known, k.CRC_TABLES,
            )  # fmt: skip
            if todo == k.IDLE:
                return
            if todo == k.BLOCK:
                cutter.emit_closed()
            elif todo == k.OPEN:
                cutter.open_is_full()
            elif todo == k.FLUSH:
                cutter.flush_gtids()
            elif todo == k.BIG:
                if not self._big(cutter):
                    return
            else:
                at, size = int(state[k.P_EVENT_AT]), int(state[k.P_EVENT_SIZE])
                if self._settle(cutter, todo, self._input, at, size):
                    state[k.P_READ] = at + size

    def _big(self, cutter: BlockCutter) -> bool:
        """Take an event in several packets; False if some are still missing."""
        state = cutter.state
        p, filled = int(state[k.P_READ]), int(state[k.P_FILLED])
        parts = []
        while True:
            if filled - p < 4:
                return False
            size = int.from_bytes(self._input[p : p + 3].tobytes(), "little")
            if filled - p - 4 < size:
                return False
            parts.append(self._input[p + 4 : p + 4 + size])
            p += 4 + size
            if size < MAX_PACKET:
                break
        whole = np.concatenate(parts)
        if whole[0]:
            self._refused(whole.tobytes())
        while True:
            todo = k.take(
                whole, 1, len(whole) - 1, state, cutter.buffer, cutter.runs, cutter.ids,
                cutter.wanted,
                cutter.known_at, cutter.known_size, cutter.known, k.CRC_TABLES,
            )  # fmt: skip
            if todo == k.IDLE or self._settle(cutter, todo, whole, 1, len(whole) - 1):
                break
        state[k.P_READ] = p
        return True

    def _settle(self, cutter: BlockCutter, todo: int, e: np.ndarray, at: int, size: int) -> bool:
        """Do what the loop stopped for. Returns whether that took the event."""
        has_crc = bool(cutter.state[k.P_HAS_CRC])
        if todo == k.GROW:
            cutter.grow(size)
            return False
        if todo == k.QUERY:
            self._query(cutter, e, at, size)
            return True
        if todo == k.SPECIAL:
            (cutter.tagged if e[at + 4] == k.TAGGED_EVENT else cutter.prepare)(e, at, size)
            return True
        event = e[at : at + size].tobytes()
        plain = event[:-4] if has_crc else event
        if todo == k.MAP:
            cutter.map(plain)
            return False
        if todo == k.ROTATE:
            cutter.rotate(plain)
        elif todo == k.FORMAT:
            cutter.format(event)
        elif todo == k.HEARTBEAT:
            cutter.heartbeat(plain)
        elif todo == k.REFUSED:
            self._refused(b"\xff" + event)
        elif todo == k.ENDED:
            raise ReplicationError("source:connection-lost")
        else:
            place = f"{cutter.at.file}:{int(cutter.state[k.P_OFFSET])}"
            raise ReplicationError("source:log-damaged", position=place)
        return True

    def _query(self, cutter: BlockCutter, e: np.ndarray, at: int, size: int) -> None:
        cutter.grow_for(size)
        said = cutter.statement(e[at : at + size].tobytes())
        missing = cutter.missing(said)
        if missing is not None:
            self._read_again(cutter, missing)
        cutter.query(e, at, size, said)

    def _read_again(self, cutter: BlockCutter, missing: Prepared) -> None:
        """Read the messages of a prepared group again, from their place in the server's log."""
        start = replace(
            cutter.at,
            file=missing.file,
            offset=missing.offset,
            gtids="",
            prepared=(),
            by_gtids=False,
        )
        # The stream itself uses a configured server id.
        params = replace(self.params, server_id=0)
        end = time.monotonic() + SILENT_SECONDS
        try:
            with LogReader(params, f"{self.name} prepared") as reader:
                reader._open(start, cutter.followed, missing.xid)
                while time.monotonic() < end:
                    reader.read(wait_seconds=0.5, max_bytes=OPEN_BYTES)
                    if reader._cutter is not None and reader._cutter.found is not None:
                        cutter.prepared.add(reader._cutter.found)
                        return
        except ReplicationError as err:
            if err.code != "source:position-lost":
                raise
            return
        raise ReplicationError("source:connection-lost")

    def _refused(self, packet: bytes) -> None:
        """The server ended the stream with an error packet."""
        (number,) = struct.unpack_from("<H", packet, 1)
        text = packet[3:].decode(errors="replace")
        error = pymysql.err.OperationalError(number, text)
        raise translate(error, self.params) from error

    def acknowledge(self, position: Position) -> None:
        """Does nothing: the server keeps its log by time, whatever its readers have read."""

    def idle_position(self) -> Position | None:
        """The position up to which `read` has returned everything; None if there is no such
        position."""
        cutter = self._cutter
        if cutter is None or cutter.is_open or cutter.has_closed or cutter.ready:
            return None
        if not cutter.at.file:
            return None
        return cutter.position()

    def close(self) -> None:
        """End the stream; safe to repeat."""
        if self._dump is not None:
            self._dump.close()
            self._dump = None
