"""Reads the current rows of a table back. Each query shows one moment; two of them may show
different ones."""

# ruff: noqa: S608 - names and values go in through `quoted` and the dialect

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, Float, Json, Timestamp
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import engines, texts
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.reading import QueriedRows
from replicators.targets.snowflake.connection import Connection, connect
from replicators.targets.snowflake.errors import FAULTS, translate
from replicators.targets.snowflake.naming import quoted
from replicators.targets.snowflake.params import SnowflakeParams
from replicators.targets.snowflake.types import native

if TYPE_CHECKING:
    from replicators.targets.snowflake.client import SnowflakeClient

ROWS_AT_ONCE = 1 << 14
_LITERALS = engines.snowflake(native).literals


@dataclass(frozen=True, slots=True)
class SnowflakeRows(QueriedRows[Connection]):
    """Each query has a moment of its own."""

    params: SnowflakeParams

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A session. Errors of the driver are translated."""
        try:
            with closing(connect(self.params)) as connection:
                yield connection
        except FAULTS as err:
            raise translate(err, self.params) from err

    def read(self, opened: Connection, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows, some thousand at a time."""
        shown = ", ".join(_shown(c) for c in columns)
        query = f"SELECT {shown} FROM {quoted(self.names)}" + (f" WHERE {where}" if where else "")
        wanted = reading.neutral(self.schema, [c.name for c in columns])
        with opened.cursor() as cursor:
            cursor.execute(query)
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                arrays = [
                    _values(list(found), c)
                    for found, c in zip(zip(*rows, strict=True), columns, strict=True)
                ]
                yield reading.fitted(pa.Table.from_arrays(arrays, wanted.names), wanted)

    def quoted(self, name: str) -> str:
        """A name in quotes."""
        return quoted((name,))

    def literal(self, column: Column, value: Any) -> str:
        """A value with its type."""
        return _LITERALS.literal(column, value, native(column))


def _shown(column: Column) -> str:
    """The expression that `_values` reads: the driver gives most values as text."""
    name = quoted((column.name,))
    match column.type:
        case Json() | Array():
            return f"TO_JSON({name})"
        case Timestamp():
            return f"CAST(CAST({name} AS TIMESTAMP_NTZ(6)) AS TEXT)"
        case Float():
            return name
    return name if native(column) == "BINARY" else f"CAST({name} AS TEXT)"


def _values(found: list[Any], column: Column) -> pa.Array:
    if isinstance(column.type, Float):
        return pa.array(found, pa.float64())
    if native(column) == "BINARY":
        return pa.array([None if v is None else bytes(v) for v in found], pa.binary())
    return texts.values(found, column.type)


@contextmanager
def opened(
    client: SnowflakeClient, names: Names, schema: TableSchema, mode: Mode
) -> Iterator[SnowflakeRows]:
    """The table's rows."""
    if client.table(names) is None:
        raise ReplicationError("target:table-missing", table=schema.id)
    yield SnowflakeRows(client.params, names, schema, mode)
