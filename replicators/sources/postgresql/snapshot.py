"""Consistent snapshots: a session that holds one, the chunks of tables in it, and their reading by
COPY in tasks.

Values come out as `decode` gives them from the log: the same loops read them.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from replicators.connectors.closing import Closing
from replicators.connectors.log import LogReader
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, SnapshotPoint, SnapshotWait
from replicators.sources.postgresql import copying, kernels, slots, sql
from replicators.sources.postgresql.columns import as_copied, select_list
from replicators.sources.postgresql.connections import ReplicationConnection, connect
from replicators.sources.postgresql.copying import Copying
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.filters import where
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.unsupported import read_copied_with_unsupported
from replicators.sources.postgresql.values import REASONS, ValueFault, read_copied

ROWS_PER_PAGE = 60
BYTES_PER_CHUNK = 256 << 20
"""Of large rows there are few in a chunk: one that takes longer than a step may would never be
done."""
BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

LEAVES = """
SELECT n.nspname, l.relname, l.relkind::text, pg_relation_filenode(l.oid)::bigint,
       CASE WHEN l.relpages > 0 AND l.reltuples >= 0 THEN l.reltuples / l.relpages ELSE -1 END::float8,
       coalesce(pg_table_size(l.oid), 0)::bigint,
       CASE WHEN l.relkind = 'r' THEN
           pg_relation_size(l.oid) / current_setting('block_size')::int ELSE 0 END::bigint
FROM (SELECT relid FROM pg_partition_tree(%s::oid) WHERE isleaf
      UNION SELECT %s::oid) t
JOIN pg_class l ON l.oid = t.relid
JOIN pg_namespace n ON n.oid = l.relnamespace
WHERE l.relkind <> 'p'
ORDER BY n.nspname, l.relname
"""  # noqa: E501

NO_LEAVES = "SELECT 1 FROM pg_class WHERE oid = %s::oid AND relkind = 'p'"

# A table that was read stays locked until the transaction ends. This query checks that the lock is
# on the table described: another table may have taken its name.
IS_READ = """
SELECT 1 FROM pg_locks l
JOIN (SELECT %s::oid AS oid UNION SELECT relid::oid FROM pg_partition_tree(%s::oid)) t ON t.oid = l.relation
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' LIMIT 1
"""  # noqa: E501


def snapshot_first(
    params: PostgresqlParams, slot_name: str, reader: LogReader, wait: SnapshotWait | None = None
) -> SnapshotSession:
    """Make the slot, and hold the consistent snapshot of its start. `reader.prepare(tables, None)`
    must have made the publications."""
    return SnapshotSession(params, slot_name, temporary=False, wait=wait)


def snapshot_again(
    params: PostgresqlParams, name: str, wait: SnapshotWait | None = None
) -> SnapshotSession:
    """Hold a consistent snapshot of now, with its log position. A temporary slot gives both, and is
    gone on return."""
    short = f"{name[:50]}_{secrets.token_hex(4)}"
    return SnapshotSession(params, short, temporary=True, wait=wait)


class SnapshotSession(Closing):
    """Holds a consistent snapshot by a transaction of its own: the walsender's own snapshot would
    end with its next command."""

    def __init__(
        self,
        params: PostgresqlParams,
        slot: str,
        *,
        temporary: bool,
        wait: SnapshotWait | None = None,
    ) -> None:
        self.params = params
        self._holder = connect(params)
        link = ReplicationConnection(params)

        def on_wait(waited: float) -> None:
            if wait is not None:
                wait(waited, slots.holders(self._holder, link.pgconn.backend_pid))

        try:
            identity = link.identity()
            version = self._holder.info.server_version
            lsn, exported = slots.create_slot(
                link, slot, version, temporary=temporary, on_wait=on_wait
            )
            self._holder.execute(BEGIN)
            self._holder.execute(f"SET TRANSACTION SNAPSHOT {sql.literal(exported)}")
            row = self._holder.execute("SELECT pg_export_snapshot()").fetchone()
            assert row is not None
            self.point = SnapshotPoint(row[0], identity.position(lsn))
        except psycopg.Error as err:
            self._holder.close()
            raise translate(err, params, slot=slot) from err
        except BaseException:
            self._holder.close()
            raise
        finally:
            link.close()

    def is_alive(self) -> bool:
        """Whether the snapshot is still usable; asks the server."""
        try:
            self._holder.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        """Ranges of pages, a set for each partition. The last range of each set has no upper
        end."""
        columns, kept = select_list(table), where(table)
        self._check_partitions(table)
        chunks: list[Chunk] = []
        for schema, name, kind, _, density, size, pages in self._leaves(table):
            query = f"SELECT {columns} FROM ONLY {sql.table(TableId(schema, name))}"  # noqa: S608 - all quoted
            for condition, estimate in _ranges(kind, density, size, pages, rows_per_chunk):
                whole = " AND ".join(c for c in (condition, kept) if c)
                asked = f"{query} WHERE {whole}" if whole else query
                chunks.append(Chunk(table.id, len(chunks), asked, estimate))
        return chunks

    def _check_partitions(self, table: TableSchema) -> None:
        """Refuse a table with a partition that can't be followed: the log would lack some changes
        after its copy."""
        try:
            statement = slots.refusing(self._holder, [table]).get(table.id)
        except psycopg.Error as err:
            self._holder.close()
            raise ReplicationError("source:snapshot-lost") from err
        if statement is not None:
            raise ReplicationError("source:partition-identity", table=table.id, statement=statement)

    def layout(self, table: TableSchema) -> str:
        """The files that hold the table. A rewrite (VACUUM FULL, CLUSTER, ALTER TABLE) makes new
        ones. Empty for a table with foreign partitions, whose rows have no place."""
        leaves = self._leaves(table)
        if any(kind != "r" for _, _, kind, *_ in leaves):
            return ""
        return json.dumps([[schema, name, file] for schema, name, _, file, *_ in leaves])

    def keyed_chunk(self, table: TableSchema, number: int, keys: pa.Table) -> Chunk:
        """A chunk of the rows with these keys. A partitioned table is read through its root, others
        without the tables that inherit from them."""
        leaves = self._leaves(table)
        only = "ONLY " if any(TableId(s, n) == table.source_id for s, n, *_ in leaves) else ""
        query = f"SELECT {select_list(table)} FROM {only}{sql.table(table.source_id)}"  # noqa: S608 - all quoted
        wanted, kept = sql.any_key(table.key, keys), where(table)
        condition = f"({wanted}) AND {kept}" if kept else wanted
        return Chunk(table.id, number, f"{query} WHERE {condition}", keys.num_rows)

    def _leaves(self, table: TableSchema) -> list[tuple[Any, ...]]:
        try:
            leaves = self._holder.execute(LEAVES, [table.native_id] * 2).fetchall()
            has_none = not leaves and self._holder.execute(NO_LEAVES, [table.native_id]).fetchone()
        except psycopg.Error as err:
            self._holder.close()
            raise ReplicationError("source:snapshot-lost") from err
        if has_none:
            return []
        # This snapshot's catalog still lists a table that was dropped since; its size is NULL.
        if not leaves or any(pages is None for *_, pages in leaves):
            raise ReplicationError("source:table-missing", table=table.id)
        return leaves

    def close(self) -> None:
        """Release the snapshot; safe to repeat."""
        self._holder.close()


def _ranges(
    kind: str, density: float, size: int, pages: int, rows_per_chunk: int
) -> list[tuple[str, int]]:
    """Conditions on ctid that cover a table, with estimated rows. `density`: rows per page at the
    last count, below 0 if never counted. `size`: bytes, including data outside its pages (TOAST). A
    foreign partition has no pages: it is one range."""
    rows = pages * (density if density >= 0 else ROWS_PER_PAGE)
    parts = max(rows / rows_per_chunk, size / BYTES_PER_CHUNK)
    if kind != "r" or pages <= 1 or parts <= 1:
        return [("", math.ceil(rows))]
    step = max(1, int(pages / parts))
    starts = range(0, pages, step)
    estimate = math.ceil(rows / len(starts))
    last = starts[-1]
    return [
        (
            f"ctid >= '({a},0)'::tid" + ("" if a == last else f" AND ctid < '({a + step},0)'::tid"),
            estimate,
        )
        for a in starts
    ]


class ChunkReader:
    """Reads chunks by COPY, each on a connection of its own, inside the snapshot named by `token`.
    Picklable."""

    def __init__(self, params: PostgresqlParams, token: str) -> None:
        self.params = params
        self.token = token

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        """Batches of about 16 MB with `schema.arrow_schema()`, decoded by the log's own loops."""
        try:
            with connect(self.params) as connection:
                connection.execute(BEGIN)
                connection.execute(f"SET TRANSACTION SNAPSHOT {sql.literal(self.token)}")
                yield from copied(connection, chunk.spec, schema)
                if not connection.execute(IS_READ, [schema.native_id] * 2).fetchone():
                    raise ReplicationError("source:table-replaced", table=schema.id)
        except psycopg.errors.UndefinedTable as err:
            raise ReplicationError("source:table-replaced", table=schema.id) from err
        except psycopg.Error as err:
            raise translate(err, self.params, table=schema.id) from err


def copied(
    connection: psycopg.Connection[Any], query: str, schema: TableSchema
) -> Iterator[pa.RecordBatch]:
    """The rows of a query with `select_list(schema)`. A batch with unsupported values has
    `FAULT_FIELDS` too. Raises `source:value-unsupported` for such a value in a key, or in a table
    without a key."""
    columns = as_copied(schema)
    try:
        for body, row_at in Copying(connection).blocks(query):
            yield _batch(body, row_at, columns, schema)
    except ValueFault as fault:
        reason = fault.reason or REASONS[kernels.BINARY]
        raise ReplicationError(
            "source:value-unsupported", table=schema.id, column=fault.column, reason=reason
        ) from fault


def _batch(
    body: np.ndarray, row_at: np.ndarray, columns: list[Column], schema: TableSchema
) -> pa.RecordBatch:
    arrow = schema.arrow_schema()
    try:
        arrays = read_copied(body, row_at, columns)
        return pa.RecordBatch.from_arrays(arrays, schema=arrow)
    except ValueFault as fault:
        if not fault.is_of_row or not schema.key:
            raise
    arrays, unsupported = read_copied_with_unsupported(body, row_at, columns, schema.key)
    marked = pa.schema([*arrow, *FAULT_FIELDS])
    return pa.RecordBatch.from_arrays(
        [*arrays, unsupported.marks, unsupported.reasons], schema=marked
    )


def warm() -> None:
    """Compile what reads chunks, or load it from numba's cache, by decoding a tiny row."""
    copying.warm()
    row = np.frombuffer(b"\0\1\0\0\0\4\0\0\0\1", np.uint8)
    read_copied(row, np.array([0, len(row)]), [Column("id", Int(32), "int4", wire="int4")])
