"""Cuts the stream of pgoutput messages into blocks at transaction ends; knows no connection."""

from __future__ import annotations

import base64
import struct
from collections import deque
from collections.abc import Sequence

import numpy as np

from replicators.connectors.log import LogBlock
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.postgres.connections import SETTINGS
from replicators.sources.postgresql import pump
from replicators.sources.postgresql.offsets import Identity
from replicators.sources.postgresql.relations import fits, parse_relation

BLOCK_BYTES = 256 << 10
OPEN_BYTES = 4 << 20
BUFFER_BYTES = 6 << 20
KEPT_BYTES = 32 << 20
EPOCH_2000 = 946_684_800
BEGIN_BYTES = pump.PREFIX + pump.BEGIN_SIZE
RELID = struct.Struct(">xI")


def origin_of(message: bytes) -> str:
    """The name in an Origin message, which follows its transaction's Begin."""
    return message[9:].partition(b"\x00")[0].decode(errors="replace")


class BlockCutter:
    """Holds the buffer that `pump` fills, and cuts it into blocks. Finished blocks wait in
    `ready`."""

    def __init__(self, start: int, identity: Identity, *, is_binary: bool) -> None:
        self.buffer = np.zeros(BUFFER_BYTES, np.uint8)
        self.state = np.zeros(pump.STATE_FIELDS, np.int64)
        self.ready: deque[LogBlock] = deque()
        self.context_version = 0
        self._identity = identity
        self._is_binary = is_binary
        self._begin: bytes | None = None
        self._relations: dict[int, bytes] = {}
        self._encoded: dict[str, str] = {}
        self._expected: dict[int, TableSchema] = {}
        self.state[pump.BLOCK_LIMIT] = BLOCK_BYTES
        self.state[pump.OPEN_LIMIT] = OPEN_BYTES
        self.state[[pump.START, pump.CLOSED_AT]] = start
        self._forget_open()

    def _forget_open(self) -> None:
        state = self.state
        state[[pump.USED, pump.MESSAGES, pump.IS_OPEN, pump.IS_SKIPPING, pump.HELD_SIZE]] = 0
        state[[pump.FIRST_AT, pump.BEGIN_AT]] = pump.NEVER

    def restart(self, *, is_binary: bool) -> None:
        """The stream begins again behind the last complete transaction: forget the open one, keep
        the known Relations."""
        self.emit_closed()
        self._forget_open()
        self.state[pump.START] = self.closed_at
        if is_binary != self._is_binary:
            self._is_binary = is_binary
            self.context_version += 1

    @property
    def closed_at(self) -> int:
        """The end of the last complete transaction."""
        return int(self.state[pump.CLOSED_AT])

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return bool(self.state[pump.IS_OPEN])

    @property
    def was_open_sent(self) -> bool:
        """Whether a part of the open transaction was handed out."""
        return bool(self.state[pump.WAS_SENT])

    @property
    def has_closed(self) -> bool:
        """Whether a complete transaction waits in the buffer."""
        return bool(self.state[pump.CUT] > 0)

    def grow(self, size: int) -> None:
        """Make room for a message of `size` bytes."""
        used = int(self.state[pump.USED])
        larger = np.zeros(used + size + pump.PREFIX + BUFFER_BYTES, np.uint8)
        larger[:used] = self.buffer[:used]
        self.buffer = larger

    def place(self, message: bytes | memoryview) -> int:
        """Append a message to the used bytes and settle it, as the compiled loop does. Returns an
        answer of `pump`."""
        size = len(message)
        at = int(self.state[pump.USED]) + pump.PREFIX
        if at + size > len(self.buffer):
            self.grow(size)
        self.buffer[at : at + size] = np.frombuffer(message, np.uint8)
        return int(pump.settle(self.state, self.buffer, size))

    def placed(self, size: int) -> bytes:
        """The message that lies behind the used bytes and is not taken yet."""
        at = int(self.state[pump.USED]) + pump.PREFIX
        return self.buffer[at : at + size].tobytes()

    def relation(self, message: bytes) -> None:
        """Take a table's schema. A changed Relation starts a new block with another context
        version. So does a new Relation that differs from the description; other new ones do not. A
        Relation within a skipped transaction goes into the context, because the server sends it
        only once."""
        (relid,) = RELID.unpack_from(message)
        known = self._relations.get(relid)
        is_skipping = bool(self.state[pump.IS_SKIPPING])
        if known != message:
            if known is not None or is_skipping or not self._is_described(relid, message):
                self._cut_before_change(is_skipping)
                self.context_version += 1
            self._relations[relid] = message
            self._encoded = {**self._encoded, str(relid): base64.b64encode(message).decode()}
        self.append(message)

    def expect(self, tables: Sequence[TableSchema]) -> None:
        """Compare new Relations with these, the latest descriptions of the tables."""
        self._expected = {t.native_id: t for t in tables}

    def _is_described(self, relid: int, message: bytes) -> bool:
        table = self._expected.get(relid)
        try:
            return table is None or fits(parse_relation(message), table)
        except ValueError:
            return True  # damaged: the decoder reports it

    def knows(self, message: bytes) -> bool:
        """Whether exactly this Relation message came before."""
        return self._relations.get(RELID.unpack_from(message)[0]) == message

    def append(self, message: bytes) -> None:
        """Take a message as it is, unless its transaction is skipped."""
        if self.state[pump.IS_SKIPPING]:
            return
        start = int(self.state[pump.USED])
        end = start + pump.PREFIX + len(message)
        if end > len(self.buffer):
            self.grow(len(message))
        framed = len(message).to_bytes(pump.PREFIX, "little") + message
        self.buffer[start:end] = np.frombuffer(framed, np.uint8)
        self.state[pump.USED] = end
        self.state[pump.MESSAGES] += 1

    def skip(self) -> None:
        """Leave out the open transaction, of which only the beginning has come."""
        state = self.state
        if state[pump.IS_SKIPPING]:
            return
        state[pump.IS_SKIPPING] = 1
        state[pump.USED] = state[pump.BEGIN_AT]
        state[pump.MESSAGES] -= 1
        if not state[pump.USED]:
            state[pump.FIRST_AT] = pump.NEVER

    def emit_closed(self) -> None:
        """Put the complete transactions into a block. An unfinished one behind them stays in the
        buffer."""
        if self.has_closed:
            cut, messages = self.state[[pump.CUT, pump.CUT_MESSAGES]].tolist()
            self._emit(cut, messages, ends_closed=True)

    def emit_open(self) -> None:
        """Put the complete transactions into a block, then the unfinished one into a block of its
        own."""
        self.emit_closed()
        used, messages = self.state[[pump.USED, pump.MESSAGES]].tolist()
        if used:
            self._emit(used, messages, ends_closed=False)

    def _cut_before_change(self, is_skipping: bool) -> None:
        self.emit_closed()
        state = self.state
        is_bare = state[pump.USED] == state[pump.BEGIN_AT] + BEGIN_BYTES and not self.was_open_sent
        if self.is_open and not is_skipping and not is_bare:
            self.emit_open()

    def _emit(self, size: int, messages: int, *, ends_closed: bool) -> None:
        state = self.state
        used = int(state[pump.USED])
        data = self.buffer[:size].tobytes()
        before = self._begin
        if ends_closed:
            self._begin = None
        elif not self.was_open_sent:
            at = int(state[pump.BEGIN_AT]) + pump.PREFIX
            self._begin = data[at : at + pump.BEGIN_SIZE]
        first = int(state[pump.FIRST_AT])
        self.ready.append(
            LogBlock(
                data=data,
                messages=messages,
                ends_closed=ends_closed,
                position=self._identity.position(self.closed_at),
                context=self._context(before),
                context_version=self.context_version,
                first_committed_at=None if first == pump.NEVER else first / 1e6 + EPOCH_2000,
            )
        )
        rest = self.buffer[size:used].copy()
        if len(self.buffer) > KEPT_BYTES and len(rest) < BUFFER_BYTES:
            self.buffer = np.zeros(BUFFER_BYTES, np.uint8)
        self.buffer[: len(rest)] = rest
        state[pump.USED] = used - size
        state[pump.MESSAGES] -= messages
        state[[pump.CUT, pump.CUT_MESSAGES]] = 0
        if state[pump.BEGIN_AT] != pump.NEVER:
            state[pump.BEGIN_AT] -= size
        state[pump.WAS_SENT] = not ends_closed
        carries = self.is_open and (used > size or not ends_closed)
        state[pump.FIRST_AT] = state[pump.BEGUN_AT] if carries else pump.NEVER

    def _context(self, begin: bytes | None) -> dict[str, object]:
        return {
            "relations": self._encoded,
            "transaction": None if begin is None else base64.b64encode(begin).decode(),
            "binary": self._is_binary,
            "settings": SETTINGS,
        }
