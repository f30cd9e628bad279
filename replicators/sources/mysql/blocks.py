"""Cuts the stream of binlog events into blocks at transaction ends; knows no connection."""

from __future__ import annotations

import base64
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from replicators.connectors.log import LogBlock
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.cutoff import ends_by_crash, give_up
from replicators.sources.mysql.executed import Executed
from replicators.sources.mysql.expand import Damaged
from replicators.sources.mysql.offsets import MARIADB, Coordinates, file_number
from replicators.sources.mysql.prepared import (
    HELD_BYTES,
    LOST,
    Prepared,
    PreparedTransactions,
    is_one_phase,
    is_prepared_here,
    open_group,
    same_xid,
    xid_of,
)
from replicators.sources.mysql.queries import Kind, Statement, statement_in
from replicators.sources.mysql.steps import TableStep, with_statement
from replicators.sources.mysql.tablemaps import HEADER, MapColumn, maps_in_use, parse_map

BLOCK_BYTES = 256 << 10
OPEN_BYTES = 4 << 20
BUFFER_BYTES = 6 << 20
KEPT_BYTES = 32 << 20
MAPS = 1 << 12


class BlockCutter:
    """Holds the buffer that the compiled loop fills, and cuts it into blocks. Finished blocks wait
    in `ready`."""

    def __init__(
        self,
        start: Coordinates,
        constants: Mapping[str, object],
        wanted: Iterable[TableId],
        sought: str = "",
    ) -> None:
        """`constants`: the part that every context has. `sought`: the XID of a prepared group; the
        group is kept in `found` when it comes again."""
        self.found: Prepared | None = None
        self._sought = sought
        self.buffer = np.zeros(BUFFER_BYTES, np.uint8)
        self.state = np.zeros(k.P_FIELDS, np.int64)
        self.runs = np.zeros((k.MAX_RUNS, 4), np.int64)
        self.ready: deque[LogBlock] = deque()
        self.context_version = 0
        self.at = start
        self.stamp = start.stamp
        self._constants = dict(constants)
        self._executed = Executed(start.flavour, start.gtids)
        self._wanted = frozenset(wanted)
        self._columns: dict[TableId, tuple[MapColumn, ...]] = {}
        self._begin = b""
        self.prepared = PreparedTransactions(start.prepared)
        self._xid = ""
        self._steps = tuple(TableStep.from_json(s) for s in start.steps)
        self._steps_reported, self._steps_before = start.steps, start.steps
        state = self.state
        state[k.P_BLOCK_LIMIT], state[k.P_OPEN_LIMIT] = BLOCK_BYTES, OPEN_BYTES
        state[[k.P_OFFSET, k.P_CLOSED_OFFSET]] = start.offset
        state[[k.P_FIRST_AT, k.P_BEGUN_AT]] = k.NEVER
        state[k.P_IS_MARIADB] = start.flavour == MARIADB
        self._forget_maps()

    def _forget_maps(self, kept: int = 0) -> None:
        places = 2 * MAPS << (2 * kept // MAPS).bit_length()
        self.ids = np.full(places, -1, np.int64)
        self.wanted, self.known_at, self.known_size = np.zeros((3, places), np.int64)
        self.known = np.zeros(1 << 16, np.uint8)
        self._known_used = self._known_count = 0
        self._tables: dict[int, TableId] = {}
        self._maps: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return bool(self.state[k.P_IS_OPEN])

    @property
    def has_closed(self) -> bool:
        """Whether a complete transaction waits in the buffer."""
        return bool(self.state[k.P_CUT] > 0)

    def grow_for(self, size: int) -> None:
        """Make room for an event of `size` bytes behind the used bytes, if there is none."""
        if len(self.buffer) < int(self.state[k.P_USED]) + size + 8:
            self.grow(size)

    def grow(self, size: int) -> None:
        """Make room for an event of `size` bytes."""
        used = int(self.state[k.P_USED])
        larger = np.zeros(used + size + BUFFER_BYTES, np.uint8)
        larger[:used] = self.buffer[:used]
        self.buffer = larger

    @property
    def followed(self) -> frozenset[TableId]:
        """The tables that are carried."""
        return self._wanted

    def follow(self, wanted: frozenset[TableId]) -> None:
        """Carry these tables from now on. A new table is carried from its next TABLE_MAP on: a
        block has no map for its rows before that."""
        self._wanted = wanted
        self.prepared.forget_copies()
        for place, table in self._tables.items():
            if table in wanted and not self.wanted[place]:
                self.known_size[place] = -1
            self.wanted[place] &= table in wanted

    def map(self, event: bytes) -> None:
        """Take a new TABLE_MAP (without checksum). If the table's schema changed, it starts a new
        block with another context version."""
        try:
            found = parse_map(event, self.at.flavour)
        except (ValueError, KeyError, IndexError) as err:
            raise ReplicationError("source:log-damaged", position=self._place()) from err
        if 2 * self._known_count >= len(self.ids):
            self._forget_but_open()
        is_wanted = found.table in self._wanted
        if is_wanted:
            before = self._columns.get(found.table)
            if before is not None and before != found.columns:
                self._cut_before_change()
                self.context_version += 1
            self._columns[found.table] = found.columns
            self._maps = {**self._maps, str(found.number): base64.b64encode(event).decode()}
        self._know(found.number, found.table, event[HEADER:], is_wanted)

    def _know(self, number: int, table: TableId, body: bytes, is_wanted: bool) -> None:
        if self._known_used + len(body) > len(self.known):
            larger = np.zeros(2 * len(self.known) + len(body), np.uint8)
            larger[: self._known_used] = self.known[: self._known_used]
            self.known = larger
        place = int(k.find(self.ids, number))
        self._known_count += self.ids[place] == -1
        self.ids[place] = number
        self.wanted[place] = is_wanted
        self.known_at[place], self.known_size[place] = self._known_used, len(body)
        self.known[self._known_used : self._known_used + len(body)] = np.frombuffer(body, np.uint8)
        self._known_used += len(body)
        self._tables[place] = table

    def _forget_but_open(self) -> None:
        """Forget all TABLE_MAPs but those that the open transaction may need. The server makes a
        new one each time it opens a table, so there can be too many."""
        maps = {int(n): base64.b64decode(m) for n, m in self._maps.items()} if self.is_open else {}
        kept = maps_in_use(maps, self.buffer[: int(self.state[k.P_USED])].tobytes())
        self._forget_maps(len(kept))
        for event in kept:
            found = parse_map(event, self.at.flavour)
            self._maps[str(found.number)] = base64.b64encode(event).decode()
            self._know(found.number, found.table, event[HEADER:], found.table in self._wanted)

    def limit_open(self, size: int) -> None:
        """Set how large an unfinished transaction may grow in the buffer."""
        self.state[k.P_OPEN_LIMIT] = size

    def open_is_full(self) -> None:
        """Act on an unfinished transaction that reached its limit: emit it. One that will be
        prepared is kept whole if possible."""
        state = self.state
        at = int(state[k.P_OPEN_AT]) + 4
        begin = self.buffer[at : at + int(state[k.P_BEGIN_SIZE]) - 4].tobytes()
        is_prepared = self._xid or is_prepared_here(begin, bool(state[k.P_IS_MARIADB]))
        if is_prepared and not state[k.P_WAS_SENT] and state[k.P_OPEN_LIMIT] < HELD_BYTES:
            self.emit_closed()
            self.limit_open(HELD_BYTES)
        else:
            self.emit_open()

    def missing(self, statement: Statement) -> Prepared | None:
        """The prepared group that this XA COMMIT commits, if its messages are not in memory."""
        found = self.prepared.get(same_xid(statement.xid))
        is_missing = found is not None and found.data is None and found.offset != LOST
        return found if is_missing and statement.kind is Kind.XA_COMMIT else None

    def query(self, e: np.ndarray, at: int, size: int, said: Statement) -> None:
        """Take a QUERY event that is more than BEGIN or COMMIT."""
        state = self.state
        is_ending_xa = False
        if said.kind is Kind.XA_START:
            self._xid = same_xid(said.xid)
        elif said.kind in (Kind.XA_COMMIT, Kind.XA_ROLLBACK):
            is_ending_xa = self._end_prepared(said, size)
        if state[k.P_BODY_OPEN]:
            opens = said.kind not in (Kind.COMMIT, Kind.ROLLBACK)
        else:
            opens = said.opens or said.kind in (Kind.BEGIN, Kind.XA_START)
        is_touching = any(t in self._wanted or t.name == "*" for t in said.tables)
        is_content = is_touching or is_ending_xa
        is_change = said.kind is Kind.CHANGE and is_touching
        if is_change and said.steps and not state[k.P_BODY_OPEN]:
            # A block of its own, whose context holds the changes of columns: decoding derives the
            # table's new schema from it.
            self.emit_closed()
            self.context_version += 1
            self.grow_for(size)
        if k.take_query(e, at, size, state, self.buffer, self.runs, opens, is_content):
            raise ReplicationError("source:log-damaged", position=self._place())
        if is_change:
            # The position behind the statement includes its steps. The block that ends with it
            # begins before, so its context does not.
            self._steps = with_statement(self._steps, said, self.position().ordinal)
            self._steps_reported = tuple(tuple(s.to_json()) for s in self._steps)
            self.emit_closed()
            self._steps_before = self._steps_reported
            self.context_version += 1

    def _end_prepared(self, said: Statement, size: int) -> bool:
        """Put the rows of a committed group behind the GTID of its commit. Returns whether the
        decoder must see this end."""
        xid = same_xid(said.xid)
        if self._xid == xid:
            # The group began here: this is a commit in one phase.
            self._xid = ""
            return bool(self.state[k.P_HAS_CONTENT]) and said.kind is Kind.XA_COMMIT
        found = self.prepared.get(xid)
        self.prepared.remove(xid)
        if said.kind is Kind.XA_ROLLBACK or (found is not None and found.offset == LOST):
            return False
        state = self.state
        if found is None or found.data is None or found.has_checksums != bool(state[k.P_HAS_CRC]):
            # The commit is of rows that were never read: the statement alone tells the decoder so.
            return True
        if len(self.buffer) < int(state[k.P_USED]) + len(found.data) + size + 8:
            self.grow(len(found.data) + size)
        used = int(state[k.P_USED])
        self.buffer[used : used + len(found.data)] = np.frombuffer(found.data, np.uint8)
        state[k.P_USED] = used + len(found.data)
        state[k.P_MESSAGES] += found.messages
        return found.messages > 0

    def prepare(self, e: np.ndarray, at: int, size: int) -> None:
        """Take an XA_PREPARE event: its transaction leaves the stream until it is committed or
        rolled back."""
        state = self.state
        event = e[at : at + size].tobytes()
        plain = event[:-4] if state[k.P_HAS_CRC] else event
        is_commit = is_one_phase(plain)
        try:
            xid = xid_of(plain)
        except ValueError as err:
            raise ReplicationError("source:log-damaged", position=self._place()) from err
        self._xid = ""
        is_kept = is_commit or bool(state[k.P_WAS_SENT])
        if not is_commit:
            group = open_group(xid, self.at.file, state, self.buffer)
            self.prepared.add(group)
            if xid == self._sought and self.found is None:
                self.found = group
        if len(self.buffer) < int(state[k.P_USED]) + size + 8:
            self.grow(size)
        if k.take_prepare(e, at, size, state, self.buffer, self.runs, is_kept):
            raise ReplicationError("source:log-damaged", position=self._place())

    def tagged(self, e: np.ndarray, at: int, size: int) -> None:
        """Take a GTID event with a tag."""
        event = e[at : at + size].tobytes()
        try:
            found = self._executed.of_event(event[:-4] if self.state[k.P_HAS_CRC] else event)
        except ValueError as err:
            raise ReplicationError("source:log-damaged", position=self._place()) from err
        if k.take_tagged(e, at, size, self.state, self.buffer, *found):
            raise ReplicationError("source:log-damaged", position=self._place())

    def statement(self, event: bytes) -> Statement:
        """Parse a QUERY event (with checksum, perhaps compressed)."""
        try:
            return statement_in(event, bool(self.state[k.P_HAS_CRC]), self._constants)
        except (ValueError, Damaged) as err:
            raise ReplicationError("source:log-damaged", position=self._place()) from err

    def rotate(self, event: bytes) -> None:
        """Take a ROTATE event: the next events come from another file, or, at the start of a
        stream, from the requested one."""
        (offset,) = struct.unpack_from("<Q", event, HEADER)
        file = event[HEADER + 8 :].decode(errors="replace")
        if file == self.at.file:
            return
        if self.is_open:
            if not ends_by_crash(event):
                raise ReplicationError("source:log-damaged", position=self._place())
            self.grow(0)
            give_up(self.state, self.buffer, self.runs)
            self._xid = ""
        self.emit_closed()
        self.context_version += 1
        self.at = replace(self.at, file=file, offset=offset)
        file_number(file)
        self.stamp = 0
        self.state[[k.P_OFFSET, k.P_CLOSED_OFFSET]] = offset
        self._forget_maps()

    def format(self, event: bytes) -> None:
        """Take a FORMAT_DESCRIPTION event: it holds the file's stamp."""
        stamp, position = struct.unpack_from("<I9xI", event)
        has_checksums = event[-5] == 1
        if bool(self.state[k.P_HAS_CRC]) != has_checksums:
            self.emit_closed()
            self.context_version += 1
            self.state[k.P_HAS_CRC] = has_checksums
        if position > self.state[k.P_OFFSET] & 0xFFFFFFFF:
            self.state[[k.P_OFFSET, k.P_CLOSED_OFFSET]] = position
        self.stamp = int(stamp)

    def heartbeat(self, event: bytes) -> None:
        """Take a heartbeat: the server has nothing more to send before this place."""
        (position,) = struct.unpack_from("<I", event, 13)
        state = self.state
        low = int(state[k.P_OFFSET]) & 0xFFFFFFFF
        is_here = event[HEADER:].decode(errors="replace") == self.at.file
        if is_here and not self.is_open and position > low:
            state[[k.P_OFFSET, k.P_CLOSED_OFFSET]] = int(state[k.P_OFFSET]) - low + position

    # --- blocks --------------------------------------------------------------------------------------------------------  # noqa: E501
    def flush_gtids(self) -> None:
        """Make room for more runs of numbers."""
        self._executed.flush(self.state, self.runs)

    def position(self) -> Position:
        """The end of the last complete transaction."""
        self.flush_gtids()
        return replace(
            self.at,
            offset=int(self.state[k.P_CLOSED_OFFSET]),
            gtids=str(self._executed),
            stamp=self.stamp,
            prepared=self.prepared.places(),
            steps=self._steps_reported,
        ).position()

    def emit_closed(self) -> None:
        """Put the complete transactions into a block. An unfinished one behind them stays in the
        buffer."""
        if self.has_closed:
            cut, messages = self.state[[k.P_CUT, k.P_CUT_MESSAGES]].tolist()
            self._emit(cut, messages, ends_closed=True)

    def emit_open(self) -> None:
        """Put the complete transactions into a block, then the unfinished one into a block of its
        own."""
        self.emit_closed()
        used, messages = self.state[[k.P_USED, k.P_MESSAGES]].tolist()
        if used:
            self._emit(used, messages, ends_closed=False)

    def _cut_before_change(self) -> None:
        self.emit_closed()
        state = self.state
        bare = state[k.P_OPEN_AT] + state[k.P_BEGIN_SIZE]
        is_bare = not state[k.P_WAS_SENT] and state[k.P_USED] <= bare
        if self.is_open and not is_bare:
            self.emit_open()

    def _emit(self, size: int, messages: int, *, ends_closed: bool) -> None:
        state = self.state
        used = int(state[k.P_USED])
        data = self.buffer[:size].tobytes()
        context = self._context()
        if ends_closed:
            self._begin = b""
        elif not state[k.P_WAS_SENT]:
            at = int(state[k.P_OPEN_AT]) + 4
            self._begin = data[at : at + int(state[k.P_BEGIN_SIZE]) - 4]
        first = int(state[k.P_FIRST_AT])
        self.ready.append(
            LogBlock(
                data=data,
                messages=messages,
                ends_closed=ends_closed,
                position=self.position(),
                context=context,
                context_version=self.context_version,
                first_committed_at=None if first == k.NEVER else first / 1e6,
            )
        )
        rest = self.buffer[size:used].copy()
        if len(self.buffer) > KEPT_BYTES and len(rest) < BUFFER_BYTES:
            self.buffer = np.zeros(BUFFER_BYTES, np.uint8)
        self.buffer[: len(rest)] = rest
        state[k.P_USED] = used - size
        state[k.P_MESSAGES] -= messages
        state[[k.P_CUT, k.P_CUT_MESSAGES]] = 0
        state[k.P_OPEN_AT] = max(0, int(state[k.P_OPEN_AT]) - size)
        state[k.P_OPEN_MESSAGES] = max(0, int(state[k.P_OPEN_MESSAGES]) - messages)
        if not ends_closed:
            state[k.P_WAS_SENT] = 1
        state[k.P_FIRST_AT] = k.NEVER

    def _context(self) -> dict[str, object]:
        """The context that decoding needs at the start of the block emitted now."""
        is_inside = bool(self._begin)
        is_change = self._steps_reported != self._steps_before
        return {
            "file": self.at.number,
            "flavour": self.at.flavour,
            "has_checksums": bool(self.state[k.P_HAS_CRC]),
            "transaction": base64.b64encode(self._begin).decode() if is_inside else None,
            "maps": self._maps if is_inside else {},
            **self._constants,
            "steps": [list(s) for s in self._steps_before],
            **({"steps_after": [list(s) for s in self._steps_reported]} if is_change else {}),
        }

    def _place(self) -> str:
        return f"{self.at.file}:{int(self.state[k.P_OFFSET])}"
