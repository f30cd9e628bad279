"""Reads the current rows of a table back. Each query shows one moment; two of them may show
different ones, since connections of MySQL can't share a snapshot."""

# ruff: noqa: S608 - names and values go in through `sql` and the dialect

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pymysql
from pymysql.cursors import SSCursor

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Float,
    LogicalType,
    Time,
    Timestamp,
    arrow_type,
)
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import engines
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.reading import QueriedRows
from replicators.targets.mysql.connections import TEXTS, Connection, connect
from replicators.targets.mysql.errors import translate
from replicators.targets.mysql.params import MysqlTargetParams
from replicators.targets.mysql.types import native

if TYPE_CHECKING:
    from replicators.targets.mysql.client import MysqlClient

ROWS_AT_ONCE = 1 << 14
_LITERALS = engines.mysql(lambda column: native(column, is_mariadb=False)).literals


@dataclass(frozen=True, slots=True)
class MysqlRows(QueriedRows[Connection]):
    """Each query has a moment of its own."""

    params: MysqlTargetParams

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection. Errors of the driver are translated."""
        try:
            with closing(connect(self.params, conv=TEXTS)) as connection:
                yield connection
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params, table=self.schema.id) from err

    def read(self, opened: Connection, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows, some thousand at a time."""
        shown = ", ".join(self._shown(c) for c in columns)
        path = ".".join(map(sql.name, self.names))
        query = f"SELECT {shown} FROM {path}" + (f" WHERE {where}" if where else "")
        wanted = reading.neutral(self.schema, [c.name for c in columns])
        with opened.cursor(SSCursor) as cursor:
            cursor.execute(query)
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                arrays = [
                    _values(list(values), c.type)
                    for values, c in zip(zip(*rows, strict=True), columns, strict=True)
                ]
                yield reading.fitted(pa.Table.from_arrays(arrays, wanted.names), wanted)

    def _shown(self, column: Column) -> str:
        """The expression whose text `_values` reads. A FLOAT would be shown with six digits."""
        name = self.quoted(column.name)
        is_short = isinstance(column.type, Float) and column.type.bits == 32
        return f"CAST({name} AS DOUBLE)" if is_short else name

    def quoted(self, name: str) -> str:
        """A name in backticks."""
        return sql.name(name)

    def literal(self, column: Column, value: Any) -> str:
        """A value without a type."""
        return _LITERALS.literal(column, value, "")


@contextmanager
def opened(
    client: MysqlClient, names: Names, schema: TableSchema, mode: Mode
) -> Iterator[MysqlRows]:
    """The table's rows."""
    if client.table(names) is None:
        raise ReplicationError("target:table-missing", table=schema.id)
    yield MysqlRows(client.params, names, schema, mode)


def _values(texts: list[Any], kind: LogicalType) -> pa.Array:
    """A column's neutral values, from the server's texts."""
    match kind:
        case Bytes():
            return pa.array(texts, pa.binary())
        case Array(of=of):
            return _lists(texts, of)
        case Boolean():
            return pa.array(texts, pa.string()).cast(pa.int8()).cast(pa.bool_())
        case Timestamp():
            return pa.array(texts, pa.string()).cast(pa.timestamp("us")).cast(arrow_type(kind))
        case Time():
            return pa.array(texts, pa.string())
        case Float():
            return pa.array(texts, pa.string()).cast(pa.float64()).cast(arrow_type(kind))
    return pa.array(texts, pa.string()).cast(arrow_type(kind))


def _lists(texts: list[str | None], of: LogicalType) -> pa.Array:
    """Lists, from JSON. `NaN` and the like are quoted there."""
    found = [None if t is None else json.loads(t, parse_float=str, parse_int=str) for t in texts]
    items = [_item(item, of) for items in found for item in items or ()]
    ends = [0]
    for some in found:
        ends.append(ends[-1] + len(some or ()))
    values = _values(items, of)
    fitted = values if values.type == arrow_type(of) else _times(values)
    is_null = pa.array([some is None for some in found])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), fitted, mask=is_null)


def _item(item: Any, of: LogicalType) -> Any:
    if isinstance(item, bool):
        return "1" if item else "0"
    return bytes.fromhex(item) if isinstance(of, Bytes) and item is not None else item


def _times(texts: pa.Array) -> pa.Array:
    wanted = pa.schema([pa.field("t", pa.time64("us"))])
    return reading.fitted(pa.table({"t": texts}), wanted).column(0).combine_chunks()
