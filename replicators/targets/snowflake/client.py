"""Snowflake as `SqlMergeTarget` sees it: files in a stage of the session, COPY, and transactions of
rendered statements.

A statement that makes or changes a table is a commit of its own here. So a publication is one
CREATE OR REPLACE TABLE ... CLONE, which readers see in one step, and its progress row follows.
"""

# ruff: noqa: S608 - names are quoted, and literals are written by `LITERALS`

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlglot import exp

from replicators.connectors.arrow import texts
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.sql import engines, tables, trees
from replicators.connectors.sql.client import AskedColumns, LiveColumns, Names
from replicators.connectors.sql.dbapi import DbApiClient
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.marks import mark_of, marked
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import Step
from replicators.connectors.target import CurrentRows
from replicators.targets.snowflake import reading, types
from replicators.targets.snowflake.connection import Connection, connect, rows
from replicators.targets.snowflake.errors import FAULTS, is_lost, translate
from replicators.targets.snowflake.naming import quoted
from replicators.targets.snowflake.params import SnowflakeParams

DIALECT = engines.snowflake(types.native)
LITERAL = DIALECT.literals.text
STAGE = "_REPLICATOR_STAGE"
"""A temporary stage, which goes with its session. Its name is not quoted: the driver's PUT takes it
so."""
FORMAT = "(TYPE = PARQUET BINARY_AS_TEXT = FALSE)"
ALREADY_SUSPENDED = 90064
_LAST = re.compile(r"_(merge|publish)_")
"""In the names of the work with which a batch or a copy ends."""
MISSING = frozenset({2003, 2043})


class SnowflakeClient(DbApiClient[Connection]):
    """See `connectors.sql.client.SqlClient`. It connects when it is first asked."""

    faults = FAULTS
    dialect: SqlDialect = DIALECT

    def __init__(self, params: SnowflakeParams) -> None:
        self._lost: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._stages: weakref.WeakKeyDictionary[Connection, Names] = weakref.WeakKeyDictionary()
        super().__init__(lambda: connect(params))
        self.params = params
        self._loaded: dict[Names, int] = {}
        self._running = 0
        self._lock = threading.Lock()

    def arrow(self, column: Column) -> pa.DataType:
        """The type in which `load` wants the values of a column."""
        return types.arrow(column)

    def make_namespace(self, namespace: Names) -> None:
        """Make the schema if it does not exist. No right to make it is asked for where it does."""
        like = f"SHOW SCHEMAS IN DATABASE {quoted(namespace[:1])} STARTS WITH"
        if all(r["name"] != namespace[1] for r in self.rows(f"{like} {LITERAL(namespace[1])}")):
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(namespace)}")

    def table(self, names: Names) -> LiveColumns | None:
        """The table, with the mark in its comment as its identity; a view of this name is one too.
        A view's identity is made from its text, which whoever made the view is shown."""
        found = next(
            (r for r in self._objects(names[:-1], names[-1]) if r["name"] == names[-1]), None
        )
        if found is None:
            return None
        identity, kind = mark_of(str(found["comment"] or "")), "TABLE"
        if "VIEW" in str(found["kind"]):
            kind, text = "VIEW", self._text_of_view(names)
            identity = f"view {hashlib.sha256(text.encode()).hexdigest()[:32]}" if text else ""

        def columns() -> dict[str, str]:
            found = self.rows(f"DESCRIBE {kind} {quoted(names)}")
            return {r["name"]: types.shown(str(r["type"])) for r in found}

        return LiveColumns(identity, AskedColumns(columns))

    def _text_of_view(self, names: Names) -> str:
        like = f"SHOW VIEWS IN SCHEMA {quoted(names[:-1])} STARTS WITH {LITERAL(names[-1])}"
        return next((str(r["text"]) for r in self.rows(like) if r["name"] == names[-1]), "")

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """The names of a schema's tables and views that begin with `prefix`."""
        found = (str(r["name"]) for r in self._objects(namespace, prefix))
        return tuple(n for n in found if n.startswith(prefix))

    def _object(self, names: Names) -> dict[str, Any]:
        """What SHOW has of a table or a view; empty where there is none."""
        found = (r for r in self._objects(names[:-1], names[-1]) if r["name"] == names[-1])
        return next(found, {})

    def _objects(self, namespace: Names, prefix: str) -> list[dict[str, Any]]:
        """Tables and views; none where there is no such schema. SHOW needs no warehouse."""
        start = f" STARTS WITH {LITERAL(prefix)}" if prefix else ""
        with self.asking() as connection:
            try:
                return rows(connection, f"SHOW OBJECTS IN SCHEMA {quoted(namespace)}{start}")
            except FAULTS as err:
                if getattr(err, "errno", None) in MISSING:
                    return []
                raise

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy. It is not transient: the live table is a clone of it."""
        self._make(names, schema.supported)

    def _make(self, names: Names, columns: Sequence[Column], *kind: exp.Expression) -> None:
        made = tables.create(DIALECT, trees.table(names), columns, properties=kind)
        made.set("replace", True)
        self.execute(DIALECT.sql(made))
        with self._lock:
            self._loaded.pop(names, None)

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Put the rows into the session's stage as Parquet files, and load them by one COPY."""
        if not appends:
            self._make(names, staged.columns, exp.TransientProperty())
        place, before = f"@{STAGE}/{job}/", self._loaded.get(names, 0)
        with self.asking() as connection:
            count = self._put(connection, names, staged, place)
        shown = [types.native(c) for c in staged.columns]
        values = ", ".join(_value(n, kind) for n, kind in enumerate(shown))
        columns = ", ".join(quoted((c.name,)) for c in staged.columns)
        copy = f"COPY INTO {quoted(names)} ({columns}) FROM (SELECT {values} FROM {place})"

        def is_done() -> bool:
            found = self.rows(f"SELECT COUNT(*) AS n FROM {quoted(names)}")
            return int(found[0]["n"]) == before + count

        if count:
            with self._awake(), self.transaction(is_done) as connection:
                rows(connection, f"{copy} FILE_FORMAT = {FORMAT} PURGE = TRUE")
        with self._lock:
            self._loaded[names] = before + count

    def _put(self, connection: Connection, names: Names, staged: StagedFiles, place: str) -> int:
        """Upload the files. Returns how many rows they have. Their columns are named by number: the
        names of a table's columns need quotes within paths."""
        if self._stages.get(connection) != names[:-1]:
            rows(connection, f"USE SCHEMA {quoted(names[:-1])}")
            rows(connection, f"CREATE TEMPORARY STAGE IF NOT EXISTS {STAGE}")
            self._stages[connection] = names[:-1]
        count = 0
        with tempfile.TemporaryDirectory(prefix="replicator-load-") as folder:
            for number, source in enumerate(staged.paths):
                path = os.path.join(folder, f"{number}.parquet")
                count += _write(staged, source, path)
                text = f"PUT {LITERAL(f'file://{path}')} {place} AUTO_COMPRESS = FALSE"
                rows(connection, text)
                os.unlink(path)
        return count

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        """Run the steps as one transaction. After a merge or a publication the warehouse may
        sleep. Between the steps of one it may not: a minute is billed whenever it resumes."""
        with self._awake(then_sleeps=_LAST.search(job) is not None):
            super().run(steps, job=job)

    @contextmanager
    def _awake(self, *, then_sleeps: bool = False) -> Iterator[None]:
        """What is done here needs the warehouse. It is suspended where that is asked for, and
        nothing else is going on."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                is_last = not self._running
        if is_last and then_sleeps and self.params.suspends:
            self._suspend()

    def _suspend(self) -> None:
        with self.asking() as connection:
            try:
                rows(connection, f"ALTER WAREHOUSE {quoted((self.params.warehouse,))} SUSPEND")
            except FAULTS as err:
                if getattr(err, "errno", None) != ALREADY_SUSPENDED:
                    raise

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        """Put a clone of the staged table in the place of the live one, with the grants that this
        one had, and then record it. A crash before the record leaves a table without the identity
        that is recorded; a repeat puts another clone there."""
        identity, comment = marked(str(self._object(live).get("comment") or ""))
        self.execute(
            f"CREATE OR REPLACE TABLE {quoted(live)} CLONE {quoted(staged)} COPY GRANTS",
            f"COMMENT ON TABLE {quoted(live)} IS {LITERAL(comment)}",
        )
        self.run(record(identity), job=job)

    def current_rows(
        self, names: Names, schema: TableSchema, mode: Mode
    ) -> AbstractContextManager[CurrentRows]:
        """The rows, each query of them at one moment."""
        return reading.SnowflakeRows.of(self, self.params, names, schema, mode)

    def drop(self, names: Names) -> None:
        """Remove a staging table."""
        self.execute(f"DROP TABLE IF EXISTS {quoted(names)}")
        with self._lock:
            self._loaded.pop(names, None)

    def rows(self, text: str) -> list[dict[str, Any]]:
        """The rows of a statement outside of any transaction."""
        with self.asking() as connection:
            return rows(connection, text)

    def execute(self, *statements: str) -> None:
        """Run statements, each by itself."""
        for text in statements:
            self.rows(text)

    def is_open(self, connection: Connection) -> bool:
        """Whether the session was not lost. The driver itself does not know it."""
        return connection not in self._lost

    def noted(self, connection: Connection, err: BaseException) -> None:
        """A lost session is ended, and not used again."""
        if is_lost(err):
            self._lost.add(connection)
            with suppress(*FAULTS):
                connection.close(retry=False)

    def translated(self, err: BaseException) -> Exception:
        """An error of the driver as one of ours."""
        return translate(err, self.params)

    def begin(self, connection: Connection) -> None:
        """Begin a transaction."""
        rows(connection, "BEGIN")


def _value(number: int, native: str) -> str:
    """A column of a Parquet file as a value of a type."""
    if native == "VARIANT":
        return f"PARSE_JSON($1:c{number}::TEXT)"
    return f"$1:c{number}::{native}"


def _write(staged: StagedFiles, source: str, path: str) -> int:
    """Write the rows of a file as COPY takes them. Returns how many there are."""
    count, fields = 0, [pa.field(f"c{n}", _plain(f.type)) for n, f in enumerate(staged.arrow)]
    with pq.ParquetWriter(path, pa.schema(fields), compression="zstd") as out:
        for batch in staged.read_file(source):
            arrays = [_loadable(values) for values in batch.columns]
            out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))
            count += batch.num_rows
    return count


def _plain(kind: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_temporal(kind) and not pa.types.is_date(kind)
    return pa.string() if is_text or pa.types.is_list(kind) else kind


def _loadable(values: pa.Array) -> pa.Array:
    """Moments and times of day as text, whose form leaves nothing to guess; lists as JSON."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        plain = values.cast(pa.timestamp("us")).cast(pa.string())
        return pc.binary_join_element_wise(plain, "+00:00" if kind.tz else "", "")
    if pa.types.is_list(kind):
        return texts.lists(values).cast(pa.string())
    return values.cast(_plain(kind))
