"""Rows of a query in the text protocol, read in large blocks and cut into Arrow columns of bytes. Knows no types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pymysql
from pymysql.constants import COMMAND

from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.connections import Connection

INPUT_BYTES = 16 << 20
READ_BYTES = 1 << 20
ROWS = 1 << 16
MAX_PACKET = 0xFFFFFF


class TextRows:
    """Iterates over lists of binary arrays, one a column. The connection does nothing else meanwhile."""

    def __init__(self, connection: Connection, query: str) -> None:
        self._connection: Any = connection
        self._query = query
        self._input = np.zeros(INPUT_BYTES, np.uint8)
        self._filled = 0

    def __iter__(self) -> Iterator[list[pa.Array]]:
        raw = self._connection
        raw._execute_command(COMMAND.COM_QUERY, self._query)
        columns = raw._read_packet().read_length_encoded_integer()
        for _ in range(columns):
            raw._read_packet()
        raw._read_packet()
        at = np.zeros((columns, ROWS), np.int64)
        size = np.zeros((columns, ROWS), np.int64)
        is_over = False
        while not is_over:
            rows, used, state = k.split_rows(self._input, self._filled, columns, at, size)
            if rows:
                yield [self._column(at[c], size[c], rows) for c in range(columns)]
            self._drop(used)
            if state == k.ROWS_ENDED:
                is_over = True
            elif state == k.ROWS_REFUSED:
                self._refuse()
            elif state == k.ROWS_BIG:
                yield self._big_row(columns)
            elif rows < ROWS:
                self._receive()

    def _column(self, at: np.ndarray, size: np.ndarray, rows: int) -> pa.Array:
        sizes = size[:rows]
        total = int(sizes[sizes > 0].sum())
        nulls = int((sizes < 0).sum())
        data = np.empty(total, np.uint8)
        offsets = np.zeros(rows + 1, np.int32)
        valid = np.zeros((rows + 7) // 8, np.uint8)
        k.gather(self._input, at, size, rows, data, offsets, valid)
        buffers = [
            pa.py_buffer(valid) if nulls else None,
            pa.py_buffer(offsets),
            pa.py_buffer(data),
        ]
        return pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)

    def _drop(self, used: int) -> None:
        rest = self._input[used : self._filled].copy()
        self._input[: len(rest)] = rest
        self._filled = len(rest)

    def _receive(self) -> None:
        """More bytes, at least one."""
        if self._filled == len(self._input):
            larger = np.zeros(2 * self._filled, np.uint8)
            larger[: self._filled] = self._input
            self._input = larger
        data = self._connection._rfile.read1(min(len(self._input) - self._filled, READ_BYTES))
        if not data:
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
        self._input[self._filled : self._filled + len(data)] = np.frombuffer(data, np.uint8)
        self._filled += len(data)

    def _refuse(self) -> None:
        size = int.from_bytes(self._input[:3].tobytes(), "little")
        packet = self._input[4 : 4 + size].tobytes()
        pymysql.err.raise_mysql_exception(packet)

    def _big_row(self, columns: int) -> list[pa.Array]:
        """One row in several packets."""
        p, parts = 0, []
        while True:
            while self._filled < p + 4:
                self._receive()
            size = int.from_bytes(self._input[p : p + 3].tobytes(), "little")
            while self._filled < p + 4 + size:
                self._receive()
            parts.append(self._input[p + 4 : p + 4 + size].tobytes())
            p += 4 + size
            if size < MAX_PACKET:
                break
        self._drop(p)
        row = np.frombuffer(b"".join(parts), np.uint8)
        found, q = [], 0
        for _ in range(columns):
            if row[q] == 0xFB:
                found.append(pa.nulls(1, pa.binary()))
                q += 1
                continue
            size, q = (int(v) for v in k.packed(row, q, len(row)))
            found.append(pa.array([row[q : q + size].tobytes()], pa.binary()))
            q += size
        return found
