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
from replicators.connectors.sql.reading import KEYS_A_QUERY, Conditions
from replicators.targets.mysql.connections import TEXTS, connect
from replicators.targets.mysql.errors import translate
from replicators.targets.mysql.params import MysqlTargetParams
from replicators.targets.mysql.types import native

if TYPE_CHECKING:
    from replicators.targets.mysql.client import MysqlClient

ROWS_AT_ONCE = 1 << 14
_CURRENT = {Mode.SOFT_DELETE: "`_is_deleted` IS NOT TRUE", Mode.HISTORY: "`_is_current`"}
_LITERALS = engines.mysql(lambda column: native(column, is_mariadb=False)).literals


@dataclass(frozen=True, slots=True)
class MysqlRows:
    """See `CurrentRows`."""

    params: MysqlTargetParams
    names: Names
    schema: TableSchema
    mode: Mode

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """See `CurrentRows.rows`."""
        for table in self._read(columns, self._conditions.between(lower, upper)):
            yield from table.to_batches()

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        """See `CurrentRows.rows_by_keys`."""
        found = [reading.neutral(self.schema, reading.chosen(self.schema, columns)).empty_table()]
        for at in range(0, keys.num_rows, KEYS_A_QUERY):
            found += self._read(columns, [self._conditions.any_key(keys.slice(at, KEYS_A_QUERY))])
        return pa.concat_tables(found)

    @property
    def _conditions(self) -> Conditions:
        return Conditions(self.schema, _name, _literal)

    def _read(self, columns: Sequence[str], conditions: Sequence[str]) -> Iterator[pa.Table]:
        chosen = [self.schema.column(n) for n in reading.chosen(self.schema, columns)]
        current = _CURRENT.get(self.mode)
        where = " AND ".join([*([current] if current else []), *conditions])
        shown = ", ".join(map(_shown, chosen))
        path = ".".join(map(sql.name, self.names))
        query = f"SELECT {shown} FROM {path}" + (f" WHERE {where}" if where else "")
        wanted = reading.neutral(self.schema, [c.name for c in chosen])
        try:
            with (
                closing(connect(self.params, conv=TEXTS)) as connection,
                connection.cursor(SSCursor) as cursor,
            ):
                cursor.execute(query)
                while rows := cursor.fetchmany(ROWS_AT_ONCE):
                    arrays = [
                        _values(list(values), c.type)
                        for values, c in zip(zip(*rows, strict=True), chosen, strict=True)
                    ]
                    yield reading.fitted(pa.Table.from_arrays(arrays, wanted.names), wanted)
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params, table=self.schema.id) from err


@contextmanager
def opened(
    client: MysqlClient, names: Names, schema: TableSchema, mode: Mode
) -> Iterator[MysqlRows]:
    """The table's rows."""
    if client.table(names) is None:
        raise ReplicationError("target:table-missing", table=schema.id)
    yield MysqlRows(client.params, names, schema, mode)


def _name(column: Column) -> str:
    return sql.name(column.name)


def _literal(column: Column, value: Any) -> str:
    return _LITERALS.literal(column, value, "")


def _shown(column: Column) -> str:
    """The expression whose text `_values` reads. A FLOAT would be shown with six digits."""
    name = _name(column)
    is_short = isinstance(column.type, Float) and column.type.bits == 32
    return f"CAST({name} AS DOUBLE)" if is_short else name


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
