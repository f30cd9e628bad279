"""Reads a query's rows by COPY in binary. Returns blocks of bytes with the offsets of the rows;
decodes no value.

Layout: PostgreSQL's documentation of COPY, "Binary Format"; the server sends one message per row.
The loop calls libpq's own functions by their addresses, as `pump` does, so a row costs no Python
object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
from numba import njit, typeof
from psycopg import pq

from replicators.sources.postgresql.pump import (
    ADDRESS,
    copy_bytes,
    free_message,
    get_copy_data,
    load,
)

BLOCK_BYTES = 16 << 20
BLOCK_ROWS = 128 << 10
SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
HEAD_BYTES = len(SIGNATURE) + 8
TRAILER = b"\xff\xff"
CUT = "server closed the connection within a COPY"

# Fields of the state, and why the loop stops.
USED, ROWS, HELD, HELD_SIZE = range(4)
ENDED, FULL = range(2)

State = np.ndarray[Any, np.dtype[np.int64]]
Buffer = np.ndarray[Any, np.dtype[np.uint8]]
Block = tuple[Buffer, State]


@njit(cache=True, nogil=True)
def take(connection: int, state: State, buffer: Buffer, row_at: State, cell: State) -> int:
    """Take rows until no more come (ENDED), or until the next row does not fit and is held (FULL).
    `row_at` receives the end of each row; `cell` is room for a pointer."""
    while True:
        if state[HELD_SIZE] == 0:
            size = np.int64(get_copy_data(connection, cell.ctypes.data, 0))
            if size <= 0:
                return ENDED
            state[HELD] = cell[0]
            state[HELD_SIZE] = size
        size = state[HELD_SIZE]
        used = state[USED]
        rows = state[ROWS]
        if used + size > len(buffer) or rows + 1 >= len(row_at):
            return FULL
        copy_bytes(buffer.ctypes.data + used, state[HELD], size)
        free_message(state[HELD])
        state[HELD_SIZE] = 0
        if size == 2 and buffer[used] == 255 and buffer[used + 1] == 255:
            continue
        state[USED] = used + size
        state[ROWS] = rows + 1
        row_at[rows + 1] = used + size


@njit(cache=True, nogil=True)
def drop(state: State) -> None:
    """Give a held message back to libpq."""
    if state[HELD_SIZE]:
        free_message(state[HELD])
        state[HELD_SIZE] = 0


def warm() -> None:
    """Compile the loops, or load them from numba's cache."""
    if load():
        cells, data = np.zeros(4, np.int64), np.zeros(1, np.uint8)
        drop(cells)
        take.compile((ADDRESS, *(typeof(a) for a in (cells, data, cells, cells))))


class Copying:
    """The rows of one query, as a generator of blocks for one thread. A block is valid until the
    next one is requested."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._pgconn = connection.pgconn
        self._is_compiled = load()
        self._state = np.zeros(4, np.int64)
        self._cell = np.zeros(1, np.int64)
        self._buffer = np.empty(BLOCK_BYTES, np.uint8)
        self._row_at = np.zeros(BLOCK_ROWS + 1, np.int64)
        self._held = b""

    def blocks(self, query: str) -> Iterator[Block]:
        """Run the query. Yields read-only bytes, and the offset at which each row begins, then the
        end of the last row."""
        result = self._pgconn.exec_(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode())
        if result.status != pq.ExecStatus.COPY_OUT:
            raise psycopg.errors.error_from_result(result)
        try:
            self._take_head()
            yield from self._take_rows()
        finally:
            if self._is_compiled:
                drop(self._state)
        self._end()

    def _take_head(self) -> None:
        """Take the header, which comes in the first row's message."""
        size, data = self._pgconn.get_copy_data(0)
        if size <= 0 or data is None:
            self._end()
            raise psycopg.OperationalError(CUT)
        message = bytes(data)
        extension = int.from_bytes(message[HEAD_BYTES - 4 : HEAD_BYTES], "big")
        row = message[HEAD_BYTES + extension :]
        if not message.startswith(SIGNATURE):
            raise ValueError("this is not a COPY in binary")
        if row != TRAILER:
            self._make_room(len(row))
            self._place(row)

    def _take_rows(self) -> Iterator[Block]:
        state = self._state
        while True:
            todo = self._take_compiled() if self._is_compiled else self._take_plain()
            rows = int(state[ROWS])
            if rows:
                body = self._buffer.view()
                body.flags.writeable = False
                yield body, self._row_at[: rows + 1]
            elif todo == FULL:
                self._make_room(int(state[HELD_SIZE]) or len(self._held))
            if todo == ENDED:
                return
            state[[USED, ROWS]] = 0

    def _make_room(self, size: int) -> None:
        if size > len(self._buffer):
            self._buffer = np.empty(size, np.uint8)

    def _take_compiled(self) -> int:
        address = self._pgconn.pgconn_ptr  # type: ignore[attr-defined]
        return int(take(address, self._state, self._buffer, self._row_at, self._cell))

    def _take_plain(self) -> int:
        """Do the same through psycopg, where its libpq can't be found."""
        while True:
            if not self._held:
                size, data = self._pgconn.get_copy_data(0)
                if size <= 0 or data is None:
                    return ENDED
                self._held = bytes(data)
            if self._held != TRAILER and not self._place(self._held):
                return FULL
            self._held = b""

    def _place(self, row: bytes) -> bool:
        used, rows = (int(v) for v in self._state[[USED, ROWS]])
        end = used + len(row)
        if end > len(self._buffer) or rows + 1 >= len(self._row_at):
            return False
        self._buffer[used:end] = np.frombuffer(row, np.uint8)
        self._row_at[rows + 1] = end
        self._state[[USED, ROWS]] = end, rows + 1
        return True

    def _end(self) -> None:
        """Read how the copy ended. Raises unless the server says that it is complete."""
        result = self._pgconn.get_result()
        while self._pgconn.get_result() is not None:
            pass
        if result is None or result.status not in (
            pq.ExecStatus.COMMAND_OK,
            pq.ExecStatus.FATAL_ERROR,
        ):
            raise psycopg.OperationalError(CUT)
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
