"""Cuts the stream of pgoutput messages into blocks at transaction ends; pure, knows no connection.

Formats: PostgreSQL's documentation, "Logical Replication Message Formats", protocol version 1. A Begin is 'B', final LSN
(int64), commit time (int64, microseconds since 2000), xid; a Commit is 'C', flags, LSN, end LSN, time; a Relation is 'R',
relation OID, ...; all big-endian.
"""

from __future__ import annotations

import base64
import struct
from collections import deque

from replicators.connectors.source import LogBlock
from replicators.sources.postgresql.connections import SETTINGS
from replicators.sources.postgresql.offsets import Identity

BLOCK_BYTES = 256 << 10
OPEN_BYTES = 4 << 20
EPOCH_2000 = 946_684_800
BEGIN_BYTES = 21
LENGTH = struct.Struct("<I")
BEGIN = struct.Struct(">xqq")
COMMIT = struct.Struct(">xBqq")
RELID = struct.Struct(">xI")


class BlockCutter:
    """Gathers messages in `buffer`; finished blocks wait in `ready`.

    `buffer` and `messages` are filled by the reading loop itself for row messages, since a call a row is too dear; the
    other kinds come through `begin`, `commit` and `relation`. `is_skipping`: the loop leaves row messages out.
    """

    def __init__(self, start: int, identity: Identity, *, is_binary: bool) -> None:
        self.buffer = bytearray()
        self.messages = 0
        self.ready: deque[LogBlock] = deque()
        self.is_skipping = False
        self.is_open = False
        self.was_open_sent = False
        self.closed_at = start
        self.server_end = start
        self.context_version = 0
        self._start = start
        self._identity = identity
        self._is_binary = is_binary
        self._cut = 0
        self._cut_messages = 0
        self._begin = b""
        self._begin_at = 0
        self._block_begin: bytes | None = None
        self._committed_at: float | None = None
        self._relations: dict[int, bytes] = {}
        self._encoded: dict[str, str] = {}

    def restart(self, *, is_binary: bool) -> None:
        """The stream begins again at the last complete transaction: forget the open one, keep what is known."""
        self.emit_closed()
        del self.buffer[:]
        self.messages = 0
        self.is_open = self.is_skipping = False
        self._start = self.closed_at
        if is_binary != self._is_binary:
            self._is_binary = is_binary
            self.context_version += 1

    def begin(self, message: bytes) -> None:
        """A transaction starts; one that ended before the start position is left out whole."""
        final, time = BEGIN.unpack_from(message)
        self.is_open = True
        self.is_skipping = final < self._start
        if self.is_skipping:
            return
        self._begin = message
        self._begin_at = len(self.buffer)
        if self._committed_at is None:
            self._committed_at = time / 1e6 + EPOCH_2000
        self.append(message)

    def commit(self, message: bytes) -> None:
        """A transaction ends."""
        _, _, end = COMMIT.unpack_from(message)
        self.is_open = False
        if not self.is_skipping:
            if self._is_bare_begin():
                self._forget_begin()
            else:
                self.append(message)
                self._cut, self._cut_messages = len(self.buffer), self.messages
        self.is_skipping = False
        self.closed_at = max(self.closed_at, end)
        self.server_end = max(self.server_end, end)
        if self.was_open_sent or self._cut >= BLOCK_BYTES:
            self.emit_closed()

    def relation(self, message: bytes) -> None:
        """A table's shape. A changed one starts a new block, with another context version; a new one, or the same again,
        does not. One within a transaction that is left out goes into the context: the server sends it only once."""
        (relid,) = RELID.unpack_from(message)
        known = self._relations.get(relid)
        if known != message:
            if known is not None or self.is_skipping:
                self._cut_before_change()
                self.context_version += 1
            self._relations[relid] = message
            self._encoded = {**self._encoded, str(relid): base64.b64encode(message).decode()}
        if not self.is_skipping:
            self.append(message)

    def knows(self, message: bytes) -> bool:
        """Whether this very Relation message came before."""
        return self._relations.get(RELID.unpack_from(message)[0]) == message

    def append(self, message: bytes) -> None:
        """Take a message as it is."""
        self.buffer += LENGTH.pack(len(message))
        self.buffer += message
        self.messages += 1

    @property
    def has_closed(self) -> bool:
        """Whether a complete transaction waits in the buffer."""
        return self._cut > 0

    def emit_closed(self) -> None:
        """Put what is complete into a block; an unfinished transaction behind it is carried over."""
        if self._cut:
            self._emit(self._cut, self._cut_messages, ends_closed=True)

    def emit_open(self) -> None:
        """Put the unfinished transaction into a block of its own, after what is complete."""
        self.emit_closed()
        if self.buffer:
            self._emit(len(self.buffer), self.messages, ends_closed=False)

    def _cut_before_change(self) -> None:
        self.emit_closed()
        if self.is_open and not self.is_skipping and self.buffer and not self._is_bare_begin():
            self.emit_open()

    def _is_bare_begin(self) -> bool:
        return len(self.buffer) == self._begin_at + BEGIN_BYTES + 4 and not self.was_open_sent

    def _forget_begin(self) -> None:
        del self.buffer[self._begin_at :]
        self.messages -= 1
        if not self.buffer:
            self._committed_at = None

    def _emit(self, size: int, messages: int, *, ends_closed: bool) -> None:
        data = bytes(memoryview(self.buffer)[:size])
        del self.buffer[:size]
        self.messages -= messages
        self._begin_at -= size
        begin = self._block_begin
        self.ready.append(
            LogBlock(
                data=data,
                messages=messages,
                ends_closed=ends_closed,
                position=self._identity.position(self.closed_at),
                context=self._context(begin),
                context_version=self.context_version,
                server_position=self.server_end,
                first_committed_at=self._committed_at,
            )
        )
        self._cut = self._cut_messages = 0
        self.was_open_sent = not ends_closed
        self._block_begin = None if ends_closed else self._begin
        carries = self.is_open and bool(self.buffer or not ends_closed)
        self._committed_at = BEGIN.unpack_from(self._begin)[1] / 1e6 + EPOCH_2000 if carries else None

    def _context(self, begin: bytes | None) -> dict[str, object]:
        return {
            "relations": self._encoded,
            "transaction": None if begin is None else base64.b64encode(begin).decode(),
            "binary": self._is_binary,
            "settings": SETTINGS,
        }
