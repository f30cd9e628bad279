"""Current rows of a SQL target's table, read back by queries."""

# ruff: noqa: S608 - names and values go in through `quoted` and `literal`

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import arrow_type
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import texts
from replicators.connectors.sql.client import Names, SqlClient

KEYS_A_QUERY = 1000
ROWS_AT_ONCE = 1 << 14
_CURRENT = {Mode.SOFT_DELETE: "{_is_deleted} IS NOT TRUE", Mode.HISTORY: "{_is_current}"}
Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class QueriedRows(ABC, Generic[Opened]):
    """See `CurrentRows`. `names`: the table's. A plugin gives what is its database's own; errors of
    its driver become `ReplicationError`s in `opened`."""

    params: Any
    names: Names
    schema: TableSchema
    mode: Mode

    @classmethod
    @contextmanager
    def of(
        cls, client: SqlClient, params: Any, names: Names, schema: TableSchema, mode: Mode
    ) -> Iterator[Self]:
        """The rows of a table, where each query has a moment of its own. Raises
        `target:table-missing`."""
        if client.table(names) is None:
            raise ReplicationError("target:table-missing", table=schema.id)
        yield cls(params, names, schema, mode)

    @abstractmethod
    def opened(self) -> AbstractContextManager[Opened]:
        """What the queries of one call are sent by."""

    @abstractmethod
    def read(self, opened: Opened, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """These columns of the rows for which the condition holds (empty: of all), in the neutral
        types."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A column's name in a query."""

    @abstractmethod
    def literal(self, column: Column, value: Any) -> str:
        """A value of a column in a query."""

    def exact(self, column: Column) -> str:
        """A column as it is compared with a key's value."""
        return self.quoted(column.name)

    def ordered(self, column: Column) -> str:
        """A column as it is compared with limits: byte by byte."""
        return self.quoted(column.name)

    def paged(
        self, pages: Iterable[Sequence[Sequence[Any]]], columns: Sequence[Column]
    ) -> Iterator[pa.Table]:
        """Pages of the driver's rows in the neutral types."""
        wanted = reading.neutral(self.schema, [c.name for c in columns])
        for rows in pages:
            arrays = [
                self.values(list(found), c)
                for found, c in zip(zip(*rows, strict=True), columns, strict=True)
            ]
            yield reading.fitted(pa.Table.from_arrays(arrays, wanted.names), wanted)

    def values(self, found: list[Any], column: Column) -> pa.Array:
        """A column's values, from what the driver gives: texts."""
        return texts.values(found, column.type)

    def query(self, shown: Sequence[str], path: str, where: str) -> str:
        """The query of these expressions."""
        return f"SELECT {', '.join(shown)} FROM {path}" + (f" WHERE {where}" if where else "")

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """See `CurrentRows.rows`."""
        conditions = []
        for sign, limit in ((">=", lower), ("<", upper)):
            if limit is not None:
                first = self.schema.column(self.schema.key[0])
                value = reading.scalar(limit, arrow_type(first.type)).as_py()
                conditions.append(f"{self.ordered(first)} {sign} {self.literal(first, value)}")
        with self.opened() as opened:
            for table in self.read(opened, self._chosen(columns), self._where(conditions)):
                yield from table.to_batches()

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        """See `CurrentRows.rows_by_keys`."""
        chosen = self._chosen(columns)
        found = [reading.neutral(self.schema, [c.name for c in chosen]).empty_table()]
        with self.opened() as opened:
            for at in range(0, keys.num_rows, KEYS_A_QUERY):
                wanted = self._any_key(keys.slice(at, KEYS_A_QUERY))
                found += self.read(opened, chosen, self._where([wanted]))
        return pa.concat_tables(found)

    def _chosen(self, columns: Sequence[str]) -> list[Column]:
        return [self.schema.column(n) for n in reading.chosen(self.schema, columns)]

    def _where(self, conditions: Sequence[str]) -> str:
        """The conditions, and that of the mode's current rows."""
        if self.mode not in _CURRENT:
            return " AND ".join(conditions)
        names = {n: self.quoted(n) for n in ("_is_deleted", "_is_current")}
        return " AND ".join([_CURRENT[self.mode].format(**names), *conditions])

    def _any_key(self, keys: pa.Table) -> str:
        """The row has one of these keys."""
        key = [self.schema.column(n) for n in self.schema.key]
        values = [keys.column(c.name).to_pylist() for c in key]
        if len(key) == 1 and None not in values[0]:
            shown = ", ".join(self.literal(key[0], v) for v in values[0])
            return f"{self.exact(key[0])} IN ({shown})"
        rows = (
            " AND ".join(self._is(c, v) for c, v in zip(key, row, strict=True))
            for row in zip(*values, strict=True)
        )
        return f"({' OR '.join(f'({row})' for row in rows)})"

    def _is(self, column: Column, value: Any) -> str:
        if value is None:
            return f"{self.quoted(column.name)} IS NULL"
        return f"{self.exact(column)} = {self.literal(column, value)}"


def pages_of(cursor: Any) -> Iterator[Sequence[Sequence[Any]]]:
    """The rows of a DB-API cursor, some thousand at a time."""
    while rows := cursor.fetchmany(ROWS_AT_ONCE):
        yield rows
