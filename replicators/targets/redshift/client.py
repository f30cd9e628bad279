"""Redshift as `SqlMergeTarget` sees it: files in a bucket, COPY, and transactions of rendered
statements. Most DDL is a part of a transaction here, so a publication is one."""

# ruff: noqa: S608 - names are quoted, and literals are written by `LITERAL`

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import psycopg
import pyarrow as pa

from replicators.connectors.file_errors import translated
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import engines, tables, trees
from replicators.connectors.sql.client import LiveColumns, Names
from replicators.connectors.sql.dbapi import DbApiClient
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.marks import mark_of, marked
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import Step
from replicators.connectors.sql.views import ViewChange
from replicators.connectors.storage import Storage
from replicators.connectors.target import CurrentRows
from replicators.targets.redshift import loading, reading, types
from replicators.targets.redshift.connection import Connection, connect, rows
from replicators.targets.redshift.errors import FAULTS, plain, translate
from replicators.targets.redshift.naming import quoted
from replicators.targets.redshift.params import RedshiftParams

DIALECT = engines.redshift(types.native)
LITERAL = DIALECT.literals.text
TABLE = """
SELECT c.oid, c.relkind, obj_description(c.oid, 'pg_class'), a.attname,
       format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = {} AND c.relname = {} ORDER BY a.attnum
"""
TABLES = """
SELECT c.relname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = {} AND c.relkind IN ('r', 'v') AND position({} IN c.relname) = 1 ORDER BY 1
"""
LOADED = "_replicator_loaded"
"""The temporary table that COPY fills where a type needs a conversion."""


class RedshiftClient(DbApiClient[Connection]):
    """See `connectors.sql.client.SqlClient`. It connects when it is first asked."""

    publishes_at_once = True
    faults = FAULTS
    dialect: SqlDialect = DIALECT

    def __init__(self, params: RedshiftParams) -> None:
        super().__init__(lambda: connect(params))
        self.params = params
        self._storage = Storage(params.store)
        self._loaded: dict[Names, int] = {}
        self._lock = threading.Lock()

    def arrow(self, column: Column) -> pa.DataType:
        """The type in which `load` wants the values of a column."""
        return types.arrow(column)

    def make_namespace(self, namespace: Names) -> None:
        """Make the schema if it does not exist. No right to make it is asked for where it does."""
        name = LITERAL(namespace[0])
        if not self.rows(f"SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {name}"):
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(namespace)}")

    def table(self, names: Names) -> LiveColumns | None:
        """The table, with the mark in its comment as its identity: Redshift may lay a table out
        anew by itself. A view of this name is one too, with its OID."""
        with self.asking() as connection:
            return _table(connection, names)

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """The names of a schema's tables and views that begin with `prefix`."""
        found = self.rows(TABLES.format(LITERAL(namespace[0]), LITERAL(prefix)))
        return tuple(str(name) for (name,) in found)

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy. Redshift chooses how it is laid out."""
        self._make(names, schema.supported)

    def _make(self, names: Names, columns: Sequence[Column]) -> None:
        made = tables.create(DIALECT, trees.table(names), columns)
        self.drop(names)
        self.execute(DIALECT.sql(made))

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Put the rows into the bucket as Parquet files, and load them by one COPY. The table is
        there before the files are: whoever removes the table of a process that died removes them
        too."""
        if not appends:
            self._make(names, staged.columns)
        folder, before = loading.folder_of(self.params.folder, names), self._loaded.get(names, 0)
        manifest, count = loading.upload(self._storage, staged, f"{folder}/{job}")

        def is_done() -> bool:
            found = self.rows(f"SELECT COUNT(*) FROM {quoted(names)}")
            return int(found[0][0]) == before + count

        if count:
            with self.transaction(is_done) as connection:
                self._copy(connection, names, staged.columns, manifest)
        with self._lock:
            self._loaded[names] = before + count
        with suppress(ReplicationError):  # the rows are there; `drop` removes what stays
            self._remove(f"{folder}/{job}")

    def _copy(
        self, connection: Connection, names: Names, columns: Sequence[Column], manifest: str
    ) -> None:
        loaded = names
        if loading.needs_first(columns):
            loaded = (LOADED,)
            rows(connection, f"DROP TABLE IF EXISTS {quoted(loaded)}")
            rows(connection, loading.first(loaded, columns))
        self.copy(connection, loaded, manifest)
        if loaded != names:
            rows(connection, loading.converted(names, loaded, columns))
            rows(connection, f"DROP TABLE {quoted(loaded)}")

    def copy(self, connection: Connection, names: Names, manifest: str) -> None:
        """Run a COPY. Its error does not quote it."""
        fault: psycopg.Error | None = None
        try:
            rows(connection, loading.copy(names, manifest, self.params.authorization))
        except psycopg.Error as err:
            fault = plain(err, self.params.s3_secret_key)
        if fault is not None:
            raise fault

    def _remove(self, folder: str) -> None:
        with translated():
            self._storage.remove_folder(folder)

    def change(self, steps: Sequence[Step], *, job: str) -> None:
        """Run steps that change tables as one transaction."""
        self.run(steps, job=job)

    def change_viewed(self, steps: Sequence[Step], view: ViewChange, *, job: str) -> None:
        """See `AtomicViews`. A column that a view shows can't be dropped, so the view goes
        first."""
        with self.transaction() as connection:
            self._drop_view(connection, view)
            self._run(connection, steps)
            self._make_view(connection, view)

    def _drop_view(self, connection: Connection, view: ViewChange) -> None:
        dropped = view.dropped()
        if dropped is not None:
            self._run(connection, [dropped])

    def _make_view(self, connection: Connection, view: ViewChange) -> None:
        made, identity = view.made(replaces=False), ""
        if made is not None and view.new is not None:
            self._run(connection, [made])
            there = _table(connection, view.new)
            assert there is not None, "it was made in this transaction"
            identity = there.identity
        self._run(connection, view.record(identity))

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        """Put the staged table in the place of the live one, with its progress row, as one
        transaction."""
        with self.transaction() as connection:
            self._publish(connection, staged, live, record)

    def publish_viewed(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        view: ViewChange,
        *,
        job: str,
    ) -> None:
        """See `AtomicViews`."""
        with self.transaction() as connection:
            self._drop_view(connection, view)
            self._publish(connection, staged, live, record)
            self._make_view(connection, view)

    def _publish(
        self,
        connection: Connection,
        staged: Names,
        live: Names,
        record: Callable[[str], Sequence[Step]],
    ) -> None:
        there = _found(connection, live)
        identity, comment = marked(str(there[0][2] or "") if there else "")
        rows(connection, f"DROP TABLE IF EXISTS {quoted(live)}")
        rows(connection, f"ALTER TABLE {quoted(staged)} RENAME TO {quoted(live[-1:])}")
        rows(connection, f"COMMENT ON TABLE {quoted(live)} IS {LITERAL(comment)}")
        self._run(connection, record(identity))

    def current_rows(
        self, names: Names, schema: TableSchema, mode: Mode
    ) -> AbstractContextManager[CurrentRows]:
        """The rows, each query of them at one moment."""
        return reading.RedshiftRows.of(self, self.params, names, schema, mode)

    def drop(self, names: Names) -> None:
        """Remove a staging table, after the files that wait for it."""
        self._remove(loading.folder_of(self.params.folder, names))
        self.execute(f"DROP TABLE IF EXISTS {quoted(names)}")
        with self._lock:
            self._loaded.pop(names, None)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement outside of any transaction."""
        with self.asking() as connection:
            return rows(connection, text)

    def execute(self, *statements: str) -> None:
        """Run statements, each by itself."""
        for text in statements:
            self.rows(text)

    def is_open(self, connection: Connection) -> bool:
        """Whether the connection was not lost."""
        return not connection.closed

    def translated(self, err: BaseException) -> Exception:
        """An error of the driver as one of ours."""
        return translate(err, self.params)

    def begin(self, connection: Connection) -> None:
        """Begin a transaction."""
        rows(connection, "BEGIN")


def _found(connection: Connection, names: Names) -> list[tuple[Any, ...]]:
    return rows(connection, TABLE.format(LITERAL(names[0]), LITERAL(names[1])))


def _table(connection: Connection, names: Names) -> LiveColumns | None:
    found = _found(connection, names)
    if not found:
        return None
    oid, kind, comment = found[0][:3]
    is_table = kind in ("r", b"r")
    identity = mark_of(str(comment or "")) if is_table else f"view {oid}"
    return LiveColumns(
        identity, {str(n): types.shown(str(k)) for *_, n, k in found if n is not None}
    )
