"""Snapshots that converge (CORRECTNESS 19). First comes the log's position, then chunks by key
range, each with the rows of the moment in which it is read. Replaying the log from that position
makes every row the same as at the source.

No lock is taken and no transaction held open. Tables without a key can't converge: see `exact`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, SnapshotPoint, SnapshotWait
from replicators.sources.mysql.cascades import are_logged, cascades
from replicators.sources.mysql.catalog import describe
from replicators.sources.mysql.columns import select_list, to_batch
from replicators.sources.mysql.connections import Connection, connect, server_of
from replicators.sources.mysql.continuity import begun_again, counted, file_stamp
from replicators.sources.mysql.engines import kinds, unlogged_problems
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.exact import SCHEME, ExactSnapshot, read_file
from replicators.sources.mysql.filters import filtered, where
from replicators.sources.mysql.lengths import Limits, cut_by_bytes
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.ranges import condition, key_ranges, table_size
from replicators.sources.mysql.results import Block, ResultRows
from replicators.sources.mysql.visibility import visible_end

CHUNK_BYTES = 128 << 20


class SnapshotSession(Closing):
    """Knows the position that chunks are read after, and their server. For most tables nothing is
    held at the server, so the session never expires. `after`: the position that the stream has
    reached. `lost`: a position that it lost before it began again. `wait`: as in
    `connectors.source.SnapshotOpener`."""

    def __init__(
        self,
        params: MysqlParams,
        name: str,
        after: Position | None = None,
        lost: Position | None = None,
        wait: SnapshotWait | None = None,
    ) -> None:
        self.params = params
        try:
            with connect(params) as connection:
                end = visible_end(connection, params, name, wait)
        except (pymysql.Error, OSError) as err:
            raise translate(err, params) from err
        if end is None:
            raise ReplicationError(
                "source:setting",
                setting="log_bin",
                value="OFF",
                wanted="ON",
                statement="log_bin = ON",
            )
        self._name = name
        self._exact: dict[TableId, ExactSnapshot] = {}
        end = begun_again(counted(end, after), lost)
        self._server = end.server
        stamp = file_stamp(params, name, end.file)
        self.point = SnapshotPoint(end.server, replace(end, stamp=stamp).position())

    def point_of(self, table: TableSchema, *, is_exact: bool) -> SnapshotPoint:
        """The place in the log that the table's chunks belong to: normally the session's. A table
        without a key, or one for which `is_exact` is set, gets a read view of its own, opened
        now."""
        if table.key and not is_exact:
            return self.point
        self._forget(table.id)
        view = ExactSnapshot(self.params, table)
        self._exact[table.id] = view
        start = counted(view.start, self.point.position)
        stamp = file_stamp(self.params, self._name, start.file)
        return SnapshotPoint(start.server, replace(start, stamp=stamp).position())

    def _forget(self, table: TableId) -> None:
        view = self._exact.pop(table, None)
        if view is not None:
            view.close()

    def is_alive(self) -> bool:
        """Always true: chunks can be read as long as the server answers."""
        return True

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        """Ranges of the key, each with about `rows_per_chunk` rows and not much more than
        `CHUNK_BYTES`. A table with a read view of its own gives the files that hold it. Raises
        `source:cascade`, `source:table-versioned` or `source:engine-unlogged` if a copy would drift
        from the start."""
        if not (table.key or table.id in self._exact):
            raise ReplicationError("source:key-needed", table=table.id)
        try:
            with connect(self.params) as connection:
                _same_server(connection, self._server)
                _refuse_unlogged(connection, table.id)
                if table.id not in self._exact:
                    return _plan(connection, table, rows_per_chunk)
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params, table=table.id) from err
        return self._exact[table.id].chunks()

    def close(self) -> None:
        """Release read views of single tables, with their files; nothing else is held."""
        for table in list(self._exact):
            self._forget(table)


def _plan(connection: Connection, table: TableSchema, rows_per_chunk: int) -> list[Chunk]:
    size = table_size(connection, table.id)
    if size is None:
        raise ReplicationError("source:table-missing", table=table.id)
    most = max(1, CHUNK_BYTES // max(size.row_bytes, 1))
    query = f"SELECT {select_list(table)} FROM {sql.table(table.id)}"  # noqa: S608 - all quoted
    parts = key_ranges(connection, table, size.rows, min(rows_per_chunk, most))
    limits = Limits(CHUNK_BYTES, rows_per_chunk)
    parts = cut_by_bytes(connection, table, parts, limits, size.rows * size.row_bytes)
    kept = where(table)
    return [
        Chunk(table.id, number, query + filtered(condition(table, part), kept), part.rows)
        for number, part in enumerate(parts)
    ]


def _refuse_unlogged(connection: Connection, table: TableId) -> None:
    """Refuse such a table, as a deploy does. This runs once the copy's place in the log is known:
    the log tells later changes."""
    for engine, kind in kinds(connection, [table]).values():
        for problem in unlogged_problems(table, engine, kind):
            raise ReplicationError(problem.code, table=table, **dict(problem.facts))
    if are_logged(connection, server_of(connection)):
        return
    for problem in cascades(connection, [table]).get(table, ()):
        raise ReplicationError(problem.code, table=table, **dict(problem.facts))


def _same_server(connection: Connection, identity: str) -> None:
    """Raise if the server changed: a copy comes from one server, because another may lack rows of
    its earlier chunks."""
    if identity and server_of(connection).identity != identity:
        raise ReplicationError("source:server-changed")


class ChunkReader:
    """Reads chunks, each on a connection of its own, from the server that `token` names ("": any).
    Picklable."""

    def __init__(self, params: MysqlParams, token: str) -> None:
        self.params = params
        self.token = token

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        """Batches of about 16 MB with `schema.arrow_schema()`; a batch with unsupported values has
        `FAULT_FIELDS` too. Raises `source:value-unsupported` for such a value in a key, and
        `source:table-altered` if the table's columns have changed."""
        if chunk.spec.startswith(SCHEME):
            yield from read_file(chunk.spec)
            return
        try:
            with connect(self.params) as connection:
                _same_server(connection, self.token)
                for block in ResultRows(connection, chunk.spec):
                    yield self._batch(block, schema)
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params, table=schema.id) from err

    def _batch(self, block: Block, schema: TableSchema) -> pa.RecordBatch:
        """The block as a batch. An unsupported value may come from a column that was converted
        since; then the error is `source:table-altered`."""
        try:
            batch = to_batch(block, schema, marks=True)
        except ReplicationError:
            self._compare(schema)
            raise
        if batch.num_columns > len(schema.columns):
            self._compare(schema)
        return batch

    def _compare(self, schema: TableSchema) -> None:
        with connect(self.params) as connection:
            asked = TableSelection(schema.id, tuple(c.name for c in schema.columns))
            now = describe(connection, [asked], self.params.zero_dates).get(schema.id)
        if now is None or not _declared(schema) <= _declared(now):
            raise ReplicationError("source:table-altered", table=schema.id)


def _declared(table: TableSchema) -> set[Column]:
    """The columns as the catalog describes them."""
    return {replace(c, ordinal=0, missing=None) for c in table.columns}
