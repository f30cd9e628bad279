"""Reads rows of a query in the binary protocol of prepared statements, in large blocks, and cuts
them into Arrow columns.

Numbers and moments come as the server holds them, so neither side converts them to or from text.
Everything else comes as bytes. Formats: MySQL, `COM_STMT_PREPARE`, `COM_STMT_EXECUTE` and "Binary
Protocol Resultset" of its protocol's pages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pymysql
from pymysql.constants import COMMAND, FIELD_TYPE, FLAG
from pymysql.protocol import FieldDescriptorPacket

from replicators.sources.mysql import kernels as k
from replicators.sources.mysql.connections import Connection

INPUT_BYTES = 16 << 20
READ_BYTES = 1 << 16
ROWS = 1 << 16
MAX_PACKET = 0xFFFFFF
SIGNED = {
    FIELD_TYPE.TINY: pa.int8(),
    FIELD_TYPE.SHORT: pa.int16(),
    FIELD_TYPE.YEAR: pa.uint16(),
    FIELD_TYPE.INT24: pa.int32(),
    FIELD_TYPE.LONG: pa.int32(),
    FIELD_TYPE.LONGLONG: pa.int64(),
    FIELD_TYPE.FLOAT: pa.float32(),
    FIELD_TYPE.DOUBLE: pa.float64(),
}
UNSIGNED = {
    pa.int8(): pa.uint8(),
    pa.int16(): pa.uint16(),
    pa.int32(): pa.uint32(),
    pa.int64(): pa.uint64(),
}
MOMENTS = {
    FIELD_TYPE.DATE: pa.date32(),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows: an array for each column, and which of its values are dates that the calendar does
    not have. Those are NULL. None means that there are none."""

    arrays: list[pa.Array]
    no_days: list[np.ndarray | None]


class ResultRows:
    """Iterates over blocks of a query's rows. The connection can do nothing else meanwhile."""

    def __init__(self, connection: Connection, query: str) -> None:
        self._connection: Any = connection
        self._query = query
        self._input = np.zeros(INPUT_BYTES, np.uint8)
        self._filled = 0
        self._types: list[pa.DataType] = []
        self._fixed = np.zeros(0, np.int64)

    def __iter__(self) -> Iterator[Block]:
        self._ask()
        at, size = (np.zeros((len(self._types), ROWS), np.int64) for _ in range(2))
        rows = end = 0
        while True:
            rows, end, state = k.split_rows(
                self._input, self._filled, self._fixed, at, size, rows, end
            )
            is_full = rows == ROWS or self._filled == len(self._input)
            if state == k.ROWS_MORE and not (rows and is_full):
                self._receive()
                continue
            if rows:
                yield self._block(self._input, at, size, rows)
            self._drop(end)
            rows = end = 0
            if state == k.ROWS_ENDED:
                return
            if state == k.ROWS_BIG:
                yield self._big_row()
            elif state != k.ROWS_MORE:
                self._refuse(state)

    def _ask(self) -> None:
        """Prepare the query and execute it, up to the point where its rows follow."""
        raw = self._connection
        raw._execute_command(COMMAND.COM_STMT_PREPARE, self._query)
        prepared = raw._read_packet().get_all_data()
        statement, columns = struct.unpack_from("<IH", prepared, 1)
        self._read_columns(columns)
        raw._execute_command(COMMAND.COM_STMT_EXECUTE, struct.pack("<IBI", statement, 0, 1))
        columns = raw._read_packet().read_length_encoded_integer()
        found = self._read_columns(columns)
        self._types = [_type_of(c) for c in found]
        widths = [0 if _is_long(t) else t.bit_width // 8 for t in self._types]
        self._fixed = np.array(widths, np.int64)

    def _read_columns(self, columns: int) -> list[FieldDescriptorPacket]:
        found = [self._connection._read_packet(FieldDescriptorPacket) for _ in range(columns)]
        self._connection._read_packet()
        return found

    def _block(self, data: np.ndarray, at: np.ndarray, size: np.ndarray, rows: int) -> Block:
        made = [_array(t, data, at[c], size[c], rows) for c, t in enumerate(self._types)]
        return Block([array for array, _ in made], [days for _, days in made])

    def _drop(self, used: int) -> None:
        rest = self._input[used : self._filled].copy()
        self._input[: len(rest)] = rest
        self._filled = len(rest)

    def _receive(self) -> None:
        """Receive more bytes, at least one."""
        if self._filled == len(self._input):
            larger = np.zeros(2 * self._filled, np.uint8)
            larger[: self._filled] = self._input
            self._input = larger
        data = self._connection._rfile.read1(min(len(self._input) - self._filled, READ_BYTES))
        if not data:
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
        self._input[self._filled : self._filled + len(data)] = np.frombuffer(data, np.uint8)
        self._filled += len(data)

    def _refuse(self, state: int) -> None:
        if state == k.ROWS_DAMAGED:
            raise pymysql.err.OperationalError(2027, "Malformed packet")
        size = int.from_bytes(self._input[:3].tobytes(), "little")
        packet = self._input[4 : 4 + size].tobytes()
        pymysql.err.raise_mysql_exception(packet)

    def _big_row(self) -> Block:
        """Read one row in several packets."""
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
        at, length = (np.zeros((len(self._types), 1), np.int64) for _ in range(2))
        if not k.split_big_row(row, self._fixed, at, length):
            self._refuse(k.ROWS_DAMAGED)
        return self._block(row, at, length, 1)


def _type_of(column: FieldDescriptorPacket) -> pa.DataType:
    """The Arrow type of a column's values as they come: numbers and moments as they are, everything
    else as bytes."""
    if column.type_code in MOMENTS:
        return MOMENTS[column.type_code]
    found = SIGNED.get(column.type_code, pa.binary())
    return UNSIGNED.get(found, found) if column.flags & FLAG.UNSIGNED else found


def _is_long(kind: pa.DataType) -> bool:
    """Whether a length stands before each value."""
    return pa.types.is_binary(kind) or kind in MOMENTS.values()


def _array(
    kind: pa.DataType, data: np.ndarray, at: np.ndarray, size: np.ndarray, rows: int
) -> tuple[pa.Array, np.ndarray | None]:
    """A column's array, and the faults of dates that the calendar does not have
    (`kernels.ZERO_DATE`, `NO_DATE`; 0: a date, or NULL)."""
    sizes = size[:rows]
    nulls, none = int((sizes < 0).sum()), 0
    valid, faults = np.zeros((rows + 7) // 8, np.uint8), np.zeros(rows, np.uint8)
    if pa.types.is_binary(kind):
        values = np.empty(int(sizes[sizes > 0].sum()), np.uint8)
        offsets = np.zeros(rows + 1, np.int32)
        k.gather(data, at, size, rows, values, offsets, valid)
        buffers = [pa.py_buffer(offsets), pa.py_buffer(values)]
    elif kind in MOMENTS.values():
        is_date = pa.types.is_date(kind)
        days = np.zeros(rows if is_date else 0, np.int32)
        micros = np.zeros(0 if is_date else rows, np.int64)
        none = int(k.gather_moments(data, at, size, rows, days, micros, valid, faults))
        buffers = [pa.py_buffer(days if is_date else micros)]
    else:
        width = kind.bit_width // 8
        values = np.zeros(rows * width, np.uint8)
        k.gather_fixed(data, at, size, rows, width, values, valid)
        buffers = [pa.py_buffer(values)]
    is_valid = pa.py_buffer(valid) if nulls + none else None
    array = pa.Array.from_buffers(kind, rows, [is_valid, *buffers], nulls + none)
    return array, faults if none else None
