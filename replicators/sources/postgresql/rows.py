"""Reads the current rows of keys by COPY, in the form that the log's values have."""

# ruff: noqa: S608 - names and values go in through `sql`

from __future__ import annotations

import psycopg
import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql import sql
from replicators.sources.postgresql.columns import select_list
from replicators.sources.postgresql.connections import connect
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.snapshot import copied

KEYS_A_QUERY = 1000
KIND = """
SELECT c.relkind::text, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %s
"""  # noqa: E501
NOW = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"


class RowReader(Closing):
    """`RowReader` of PostgreSQL; each call opens a connection of its own."""

    def __init__(self, params: PostgresqlParams) -> None:
        self.params = params

    def read(self, table: TableSchema, keys: pa.Table) -> tuple[pa.Table, int]:
        """The rows, then the end of the server's log. Every commit that the query sees lies before
        that end."""
        found: list[pa.RecordBatch] = []
        try:
            with connect(self.params) as connection:
                kind = connection.execute(KIND, [table.native_id]).fetchone()
                if kind is None:
                    raise ReplicationError("source:table-missing", table=table.id)
                only = "" if kind[0] == "p" else "ONLY "
                name = sql.table(TableId(kind[1], kind[2]))
                head = f"SELECT {select_list(table)} FROM {only}{name} WHERE "
                for at in range(0, keys.num_rows, KEYS_A_QUERY):
                    query = head + sql.any_key(table.key, keys.slice(at, KEYS_A_QUERY))
                    found += copied(connection, query, table)
                row = connection.execute(NOW).fetchone()
                assert row is not None
        except psycopg.Error as err:
            raise translate(err, self.params, table=table.id) from err
        return pa.Table.from_batches(found, schema=table.arrow_schema()), int(row[0])

    def close(self) -> None:
        """Nothing stays open."""
