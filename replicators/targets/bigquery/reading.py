"""Reads the current rows of a table back: queries of the table as it was at one moment, whose
answers come as Arrow.

The emulator knows no earlier moments: there, each query reads the present rows.
"""

# ruff: noqa: S608 - names and values go in through the dialect

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from replicators.connectors.arrow import reading
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import trees
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.reading import KEYS_A_QUERY, Conditions
from replicators.targets.bigquery import dialect, naming
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.errors import translate
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.types import native

if TYPE_CHECKING:
    from replicators.targets.bigquery.client import BigQueryClient

_CURRENT = {Mode.SOFT_DELETE: "`_is_deleted` IS NOT TRUE", Mode.HISTORY: "`_is_current`"}


@dataclass(frozen=True, slots=True)
class BigQueryRows:
    """See `CurrentRows`. `moment`: None reads the present rows."""

    params: BigQueryParams
    names: Names
    schema: TableSchema
    mode: Mode
    moment: datetime | None

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """See `CurrentRows.rows`."""
        conditions = self._conditions.between(lower, upper)
        for table in self._read(columns, conditions):
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
        from google.cloud import bigquery

        chosen = [self.schema.column(n) for n in reading.chosen(self.schema, columns)]
        current = _CURRENT.get(self.mode)
        where = " AND ".join([*([current] if current else []), *conditions])
        shown = ", ".join(map(_name, chosen))
        moment = "" if self.moment is None else f" FOR SYSTEM_TIME AS OF {_moment(self.moment)}"
        query = f"SELECT {shown} FROM {dialect.quoted(self.names)}{moment}"
        query += f" WHERE {where}" if where else ""
        wanted = reading.neutral(self.schema, [c.name for c in chosen])
        config = bigquery.QueryJobConfig(labels=self.params.label_values)
        try:
            with open_client(self.params) as client:
                found = client.query(query, job_config=config).result()
                for batch in found.to_arrow_iterable():
                    rows = pa.Table.from_batches([batch]).rename_columns(wanted.names)
                    yield reading.fitted(rows, wanted)
        except Exception as err:
            raise translate(err, self.params.project) from err


@contextmanager
def opened(
    client: BigQueryClient, names: Names, schema: TableSchema, mode: Mode
) -> Iterator[BigQueryRows]:
    """The table's rows as they are now."""
    if client.described(names) is None:
        raise ReplicationError("target:table-missing", table=schema.id)
    moment = None
    if not client.params.is_emulated:
        now = client.query(trees.select([trees.called(exp.CurrentTimestamp(), "now")], None))
        moment = now.column("now")[0].as_py()
    yield BigQueryRows(client.params, names, schema, mode, moment)


def _name(column: Column) -> str:
    return dialect.quoted((naming.column(column.name),))


def _literal(column: Column, value: Any) -> str:
    return dialect.DIALECT.literals.literal(column, value, native(column))


def _moment(at: datetime) -> str:
    return f"TIMESTAMP '{at.astimezone(UTC).isoformat(' ', 'microseconds')}'"
