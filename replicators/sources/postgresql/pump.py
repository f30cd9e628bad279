"""The compiled hot loop: moves pgoutput messages from libpq into a buffer and finds where
transactions end.

It calls libpq's own functions by their addresses, so a row costs no Python object and the loop runs
without the GIL. Layouts: PostgreSQL's documentation, "Streaming Replication Protocol" (XLogData,
keepalive) and "Logical Replication Message Formats".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types

State = np.ndarray[Any, np.dtype[np.int64]]
Buffer = np.ndarray[Any, np.dtype[np.uint8]]

# Fields of the state (int64 each).
(USED, MESSAGES, CUT, CUT_MESSAGES, BEGIN_AT, IS_OPEN, IS_SKIPPING, WAS_SENT, CLOSED_AT, START,
 BLOCK_LIMIT, OPEN_LIMIT, IDLE_END, WANTS_REPLY, HELD, HELD_SIZE, BEGUN_AT,
 FIRST_AT) = range(18)  # fmt: skip
STATE_FIELDS = 18

# Why the loop stops.
IDLE, BLOCK, OPEN, OTHER, GROW, ENDED, REPLY = range(7)

HEAD = 25
BEGIN_SIZE = 21
PREFIX = 4
NEVER = -(2**63)

ADDRESS = types.intp
get_copy_data = types.ExternalFunction("PQgetCopyData", types.int32(ADDRESS, ADDRESS, types.int32))
_consume_input = types.ExternalFunction("PQconsumeInput", types.int32(ADDRESS))
free_message = types.ExternalFunction("PQfreemem", types.void(ADDRESS))
copy_bytes = types.ExternalFunction("memcpy", ADDRESS(ADDRESS, ADDRESS, ADDRESS))


@cache
def load() -> bool:
    """Make psycopg's own libpq known to the compiled code; False where it can't be found."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return False
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "/libpq" in line}
    paths = {p for p in paths if "psycopg" in p} or paths
    if len(paths) != 1:
        return False
    llvm.load_library_permanently(paths.pop())
    return True


@njit(inline="always")
def _be8(data: Buffer, at: int) -> Any:
    value = np.int64(0)
    for i in range(8):
        value = (value << 8) | np.int64(data[at + i])
    return value


@njit(inline="always")
def _put_length(buffer: Buffer, at: int, size: int) -> None:
    for i in range(4):
        buffer[at + i] = (size >> (8 * i)) & 0xFF


@njit(cache=True, nogil=True)
def settle(state: State, buffer: Buffer, size: int) -> Any:
    """Account for a pgoutput message of `size` bytes that lies behind `USED` (with room for its
    length before it).

    Returns BLOCK, OPEN or OTHER if the caller has to act, else IDLE. With OTHER the message was not
    taken.
    """
    used = state[USED]
    at = used + PREFIX
    kind = buffer[at]
    if kind == 73 or kind == 85 or kind == 68:
        if state[IS_SKIPPING]:
            return IDLE
        _put_length(buffer, used, size)
        state[USED] = at + size
        state[MESSAGES] += 1
        return OPEN if state[USED] - state[CUT] >= state[OPEN_LIMIT] else IDLE
    if kind == 66:
        state[IS_OPEN] = 1
        state[IS_SKIPPING] = _be8(buffer, at + 1) < state[START]
        if state[IS_SKIPPING]:
            return IDLE
        state[BEGIN_AT] = used
        state[BEGUN_AT] = _be8(buffer, at + 9)
        if state[FIRST_AT] == NEVER:
            state[FIRST_AT] = state[BEGUN_AT]
        _put_length(buffer, used, size)
        state[USED] = at + size
        state[MESSAGES] += 1
        return IDLE
    if kind == 67:
        return _commit(state, buffer, size)
    return OTHER


@njit(cache=True, nogil=True)
def _commit(state: State, buffer: Buffer, size: int) -> int:
    used = state[USED]
    end = _be8(buffer, used + PREFIX + 10)
    state[IS_OPEN] = 0
    is_bare = used == state[BEGIN_AT] + PREFIX + BEGIN_SIZE and not state[WAS_SENT]
    if state[IS_SKIPPING]:
        state[IS_SKIPPING] = 0
    elif is_bare:
        state[USED] = state[BEGIN_AT]
        state[MESSAGES] -= 1
        if state[USED] == 0:
            state[FIRST_AT] = NEVER
    else:
        _put_length(buffer, used, size)
        state[USED] = used + PREFIX + size
        state[MESSAGES] += 1
        state[CUT] = state[USED]
        state[CUT_MESSAGES] = state[MESSAGES]
    state[CLOSED_AT] = max(state[CLOSED_AT], end)
    return BLOCK if state[CUT] and (state[WAS_SENT] or state[CUT] >= state[BLOCK_LIMIT]) else IDLE


@njit(cache=True, nogil=True)
def keepalive(state: State, head: Buffer) -> int:
    """Account for a keepalive message; REPLY if the server wants an answer at once."""
    end = _be8(head, 1)
    if not state[IS_OPEN]:
        state[IDLE_END] = max(state[IDLE_END], end)
    state[WANTS_REPLY] |= head[17]
    return REPLY if state[WANTS_REPLY] else IDLE


@njit(cache=True, nogil=True)
def _hold(connection: int, state: State, cell: State) -> int:
    """Get the next message into `HELD`. Returns IDLE if there is one, ENDED if the stream ended,
    GROW if there is nothing to read."""
    for is_last in (False, True):
        size = np.int64(get_copy_data(connection, cell.ctypes.data, 1))
        if size > 0:
            state[HELD] = cell[0]
            state[HELD_SIZE] = size
            return IDLE
        if size < 0:
            return ENDED
        if not is_last and _consume_input(connection) == 0:
            return ENDED
    return GROW


@njit(cache=True, nogil=True)
def _drop_held(state: State) -> None:
    free_message(state[HELD])
    state[HELD_SIZE] = 0


@njit(cache=True, nogil=True)
def run(connection: int, state: State, buffer: Buffer, cell: State, head: Buffer) -> Any:
    """Take messages from the libpq connection at this address until the caller has to act or there
    is nothing to read.

    `cell` is room for a pointer, `head` for 32 bytes. A message too large for `buffer` is held
    until the next call.
    """
    while True:
        if state[HELD_SIZE] == 0:
            found = _hold(connection, state, cell)
            if found != IDLE:
                return IDLE if found == GROW else ENDED
        size = state[HELD_SIZE] - HEAD
        copy_bytes(head.ctypes.data, state[HELD], min(state[HELD_SIZE], HEAD))
        room = state[USED] + PREFIX
        if head[0] != 119:
            _drop_held(state)
            if keepalive(state, head) != IDLE:
                return REPLY
            continue
        if room + size > len(buffer):
            return GROW
        copy_bytes(buffer.ctypes.data + room, state[HELD] + HEAD, size)
        _drop_held(state)
        todo = settle(state, buffer, size)
        if todo != IDLE:
            if todo == OTHER:
                state[HELD] = size
            return todo


def warm() -> None:
    """Compile the loop, or load it from numba's cache. There is no connection, so it ends at
    once."""
    if load():
        state, cell = np.zeros(STATE_FIELDS, np.int64), np.zeros(1, np.int64)
        run(0, state, np.zeros(1, np.uint8), cell, np.zeros(32, np.uint8))
