"""Reads the current rows of keys, in the form that the log's values have."""

# ruff: noqa: S608 - names and values go in through `sql` and `literal`

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pyarrow as pa
import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.columns import select_list, to_batch
from replicators.sources.mysql.connections import connect, log_end, server_of
from replicators.sources.mysql.continuity import counted
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.ranges import literal
from replicators.sources.mysql.results import ResultRows
from replicators.sources.mysql.visibility import visible_end

KEYS_A_QUERY = 500


class RowReader(Closing):
    """`RowReader` of MySQL; each call opens a connection of its own. `after`: the position that the
    stream has reached, by which positions are counted."""

    def __init__(self, params: MysqlParams, name: str, after: Position | None = None) -> None:
        self.params = params
        self._name = name
        self._after = after

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        """The rows, then the end of the server's log. What the log has now can be read when the
        query begins (CORRECTNESS 19). A collation may bring rows of other keys too."""
        found: list[pa.RecordBatch] = []
        try:
            with connect(self.params) as connection:
                server = server_of(connection)
                visible_end(connection, self.params, self._name)
                head = f"SELECT {select_list(table)} FROM {sql.table(table.source_id)} WHERE "
                for at in range(0, keys.num_rows, KEYS_A_QUERY):
                    query = head + _any_key(table, keys.slice(at, KEYS_A_QUERY))
                    found += [to_batch(b, table) for b in ResultRows(connection, query)]
                end = log_end(connection, server)
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params, table=table.id) from err
        if end is None:
            raise ReplicationError(
                "source:setting", setting="log_bin", value="OFF", wanted="ON",
                statement="log_bin = ON",
            )  # fmt: skip
        rows = pa.Table.from_batches(found, schema=table.arrow_schema())
        return rows, counted(end, self._after).value

    def close(self) -> None:
        """Nothing stays open."""


def _any_key(table: TableSchema, keys: pa.Table) -> str:
    """A condition that holds for the rows with one of these keys."""
    names = [sql.name(n) for n in table.key]
    columns = [keys.column(n).to_pylist() for n in table.key]
    if len(names) == 1 and None not in columns[0]:
        return f"{names[0]} IN ({', '.join(_literal(v) for v in columns[0])})"
    rows = zip(*columns, strict=True)
    return " OR ".join(
        f"({' AND '.join(_is(n, v) for n, v in zip(names, row, strict=True))})" for row in rows
    )


def _is(name: str, value: Any) -> str:
    return f"{name} IS NULL" if value is None else f"{name} = {_literal(value)}"


def _literal(value: Any) -> str:
    match value:
        case datetime():
            return sql.literal(value.replace(tzinfo=None).isoformat(" "))
        case date() | time():
            return sql.literal(value.isoformat())
    return literal(value)
