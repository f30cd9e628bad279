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
from replicators.connectors.sql.reading import QueriedRows
from replicators.targets.bigquery import dialect, naming
from replicators.targets.bigquery.connection import open_client
from replicators.targets.bigquery.errors import translate
from replicators.targets.bigquery.params import BigQueryParams
from replicators.targets.bigquery.types import native

if TYPE_CHECKING:
    from google.cloud.bigquery import Client

    from replicators.targets.bigquery.client import BigQueryClient


@dataclass(frozen=True, slots=True)
class BigQueryRows(QueriedRows["Client"]):
    """`moment`: None reads the present rows."""

    params: BigQueryParams
    moment: datetime | None

    @contextmanager
    def opened(self) -> Iterator[Client]:
        """A client. Its errors are translated."""
        try:
            with open_client(self.params) as client:
                yield client
        except Exception as err:
            raise translate(err, self.params.project) from err

    def read(self, opened: Client, columns: Sequence[Column], where: str) -> Iterator[pa.Table]:
        """The rows as they were at the moment."""
        from google.cloud import bigquery

        shown = ", ".join(self.quoted(c.name) for c in columns)
        moment = "" if self.moment is None else f" FOR SYSTEM_TIME AS OF {_moment(self.moment)}"
        query = f"SELECT {shown} FROM {dialect.quoted(self.names)}{moment}"
        query += f" WHERE {where}" if where else ""
        wanted = reading.neutral(self.schema, [c.name for c in columns])
        config = bigquery.QueryJobConfig(labels=self.params.label_values)
        for batch in opened.query(query, job_config=config).result().to_arrow_iterable():
            rows = pa.Table.from_batches([batch]).rename_columns(wanted.names)
            yield reading.fitted(rows, wanted)

    def quoted(self, name: str) -> str:
        """A column by the name that it has there."""
        return dialect.quoted((naming.column(name),))

    def literal(self, column: Column, value: Any) -> str:
        """A value with its type."""
        return dialect.DIALECT.literals.literal(column, value, native(column))


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


def _moment(at: datetime) -> str:
    return f"TIMESTAMP '{at.astimezone(UTC).isoformat(' ', 'microseconds')}'"
