"""Reads the current rows of a table back, as COPY gives them in CSV, in one consistent snapshot
that several connections share.

Each column is selected in a form whose text Arrow reads exactly: moments as microseconds, bytes as
hexadecimal digits, the elements of an array each with a mark before them.
"""

# ruff: noqa: S608 - names and values go in through `sql`

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
    arrow_type,
)
from replicators.connectors.postgres import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.reading import QueriedRows
from replicators.targets.postgresql.connections import Connection, connect
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.params import PostgresqlTargetParams

Names = tuple[str, ...]
BLOCK_BYTES = 8 << 20
IDENTITY = """
SELECT c.oid::text || ':' || c.relfilenode::text FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
"""The second number changes when all rows are written again: then an older snapshot finds none."""
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_NO_ITEM, _ITEM = "-", "x"


@dataclass(frozen=True, slots=True)
class PostgresqlRows(QueriedRows[Connection]):
    """`snapshot`: the exported snapshot's name. `identity`: the table that it was exported for."""

    params: PostgresqlTargetParams
    snapshot: str
    identity: str

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection in the snapshot. `target:table-replaced` where the table is no longer the
        one that the snapshot shows."""
        try:
            with connect(self.params) as connection:
                connection.execute(_BEGIN)
                connection.execute(
                    f"SET TRANSACTION SNAPSHOT {sql.literal(self.snapshot)}".encode()
                )
                connection.execute(f"LOCK TABLE {_path(self.names)} IN ACCESS SHARE MODE".encode())
                if identity_of(connection, self.names) != self.identity:
                    raise ReplicationError("target:table-replaced", table=self.schema.id)
                yield connection
        except psycopg.Error as err:
            raise translate(err, self.params, table=self.schema.id) from err

    def read(self, opened: Connection, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows, as COPY gives them."""
        shown = ", ".join(_shown(c.type, sql.name(c.name)) for c in columns)
        query = f"SELECT {shown} FROM {_path(self.names)}" + (f" WHERE {where}" if where else "")
        names = [str(at) for at in range(len(columns))]
        convert = csv.ConvertOptions(
            column_types={n: _read_type(c.type) for n, c in zip(names, columns, strict=True)},
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        wanted = reading.neutral(self.schema, [c.name for c in columns])
        for block in _blocks(opened, f"COPY ({query}) TO STDOUT (FORMAT csv)"):
            read = csv.ReadOptions(column_names=names, block_size=len(block) + 1)
            table = csv.read_csv(pa.BufferReader(block), read, parse, convert)
            arrays = [
                _values(table.column(n).combine_chunks(), c.type)
                for n, c in zip(names, columns, strict=True)
            ]
            yield pa.Table.from_arrays(arrays, schema=wanted)

    def quoted(self, name: str) -> str:
        """A name in double quotes."""
        return sql.name(name)

    def ordered(self, column: Column) -> str:
        """A text is compared byte by byte."""
        name = sql.name(column.name)
        is_text = isinstance(column.type, String | Json | Enum)
        return f'{name}::text COLLATE "C"' if is_text else name

    def literal(self, column: Column, value: Any) -> str:
        """An untyped literal: it takes the type of its column."""
        match value:
            case bool():
                return "'t'" if value else "'f'"
            case bytes():
                return sql.literal(f"\\x{value.hex()}")
            case datetime():
                return sql.literal(value.isoformat(" "))
            case date() | time():
                return sql.literal(value.isoformat())
        return sql.literal(str(value))


@contextmanager
def opened(
    params: PostgresqlTargetParams, names: Names, schema: TableSchema, mode: Mode
) -> Iterator[PostgresqlRows]:
    """The table's rows as they are now, for as long as the context lasts: a transaction of this
    connection keeps the snapshot."""
    try:
        with connect(params) as connection:
            connection.execute(_BEGIN)
            row = connection.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
            identity = identity_of(connection, names)
            if row is None or not identity:
                raise ReplicationError("target:table-missing", table=schema.id)
            yield PostgresqlRows(params, names, schema, mode, str(row[0]), identity)
    except psycopg.Error as err:
        raise translate(err, params, table=schema.id) from err


def identity_of(connection: Connection, names: Names) -> str:
    """What tells the table from another one of this name; empty where there is none."""
    row = connection.execute(IDENTITY, list(names)).fetchone()
    return str(row[0]) if row else ""


def _path(names: Names) -> str:
    return ".".join(sql.name(part) for part in names)


def _blocks(connection: Connection, query: str) -> Iterator[bytes]:
    """The rows' bytes, some megabytes of whole rows at a time: libpq gives one row at a time."""
    parts: list[bytes] = []
    size = 0
    with connection.cursor() as cursor, cursor.copy(query.encode()) as rows:
        for row in rows:
            parts.append(bytes(row))
            size += len(row)
            if size >= BLOCK_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
    if parts:
        yield b"".join(parts)


# Columns as text


def _shown(kind: LogicalType, value: str) -> str:
    """The expression whose text `_values` reads."""
    match kind:
        case Bytes():
            return f"encode({value}, 'hex')"
        case Date():
            return f"{value} - DATE '1970-01-01'"
        case Timestamp():
            return _micros(f"extract(epoch FROM date_trunc('second', {value}))::bigint", value)
        case Time():
            seconds = f"(extract(hour FROM {value}) * 3600 + extract(minute FROM {value}) * 60)"
            return f"{seconds}::bigint * 1000000 + extract(microseconds FROM {value})::bigint"
        case Array(of=of):
            item = f"{_ITEM!r} || {_item(of)}"
            items = f"SELECT {item} FROM unnest({value}) WITH ORDINALITY AS i(e, n) ORDER BY n"
            return (
                f"CASE WHEN {value} IS NOT NULL"
                f" THEN array_to_string(ARRAY({items}), ',', {_NO_ITEM!r}) END"
            )
    return value


def _micros(seconds: str, value: str) -> str:
    return f"{seconds} * 1000000 + extract(microseconds FROM {value})::bigint % 1000000"


def _item(kind: LogicalType) -> str:
    """An array's element `e` as text without commas."""
    match kind:
        case Boolean() | Int() | Decimal() | Float():
            return "e::text"
        case Date() | Timestamp() | Time():
            return f"({_shown(kind, 'e')})::text"
        case Bytes():
            return _shown(kind, "e")
    return "CASE WHEN e IS NOT NULL THEN encode(convert_to(format('%s', e), 'UTF8'), 'hex') END"


_NUMBERS = (Date, Timestamp, Time)


def _read_type(kind: LogicalType) -> pa.DataType:
    """The Arrow type that CSV is read as."""
    if isinstance(kind, _NUMBERS):
        return pa.int64()
    return pa.string() if isinstance(kind, Array | Bytes) else arrow_type(kind)


def _values(read: pa.Array, kind: LogicalType) -> pa.Array:
    """A column's neutral values."""
    match kind:
        case Date():
            return read.cast(pa.int32()).cast(pa.date32())
        case Timestamp() | Time():
            return read.cast(arrow_type(kind))
        case Bytes():
            return _bytes(read)
        case Array(of=of):
            return _lists(read, of)
    return read


def _lists(read: pa.Array, of: LogicalType) -> pa.Array:
    """Lists, from the texts of their elements."""
    split = pc.split_pattern(read, ",")
    is_empty = pc.fill_null(pc.equal(read, ""), fill_value=True)
    lengths = pc.if_else(is_empty, 0, pc.fill_null(pc.list_value_length(split), 0))
    ends = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    marked = split.filter(pc.invert(is_empty)).flatten()
    texts = pc.if_else(
        pc.equal(marked, _NO_ITEM), pa.scalar(None, pa.string()), pc.utf8_slice_codeunits(marked, 1)
    )
    items = _items(texts, of)
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), items, mask=read.is_null())


def _items(texts: pa.Array, of: LogicalType) -> pa.Array:
    match of:
        case Bytes():
            return _bytes(texts)
        case String() | Json() | Uuid() | Enum():
            return _bytes(texts).cast(pa.string())
        case Date() | Timestamp() | Time():
            return _values(texts.cast(pa.int64()), of)
    return texts.cast(arrow_type(of))


_DIGITS = np.zeros(256, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


def _bytes(digits: pa.Array) -> pa.Array:
    """Bytes, from their hexadecimal digits."""
    plain = pc.fill_null(digits, "")
    _, ends, body = plain.buffers()
    if not len(plain):
        return pa.array([], pa.binary())
    offsets = np.frombuffer(ends, np.int32, len(plain) + 1, offset=4 * plain.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(body, np.uint8)[first:last] if body is not None else _DIGITS[:0]
    found = (_DIGITS[data[0::2]] << 4) | _DIGITS[data[1::2]]
    made = pa.Array.from_buffers(
        pa.binary(),
        len(plain),
        [None, pa.py_buffer(((offsets - first) // 2).astype(np.int32)), pa.py_buffer(found)],
    )
    return pc.if_else(digits.is_valid(), made, pa.scalar(None, pa.binary()))
