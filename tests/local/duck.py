"""A SQL target without a server, for tests only: DuckDB. It has real SQL, transactions and MERGE,
so it is the twin of a warehouse. Each call opens the file and closes it, so that a test may read it
while a run goes on."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa
from sqlglot import exp

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Time,
    Timestamp,
    Unsupported,
    arrow_type,
)
from replicators.connectors.params import param
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.connectors.sql import engines, tables, trees
from replicators.connectors.sql.client import LiveColumns, Names
from replicators.connectors.sql.evolve import Types
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import CODES, Check, Step
from replicators.connectors.sql.target import SqlPlaces
from replicators.connectors.sql.together import TogetherTarget
from replicators.connectors.sql.views import ViewChange
from replicators.connectors.target import Fit, FitKind, TargetPlugin
from replicators.connectors.view_fields import current_views, view_suffix
from tests.local.held import HeldRows

NAME = "duck"
PATIENCE = 60.0
_CONNECTING = threading.Lock()
"""The first connection to a file makes the database, and then gives it its functions for Arrow. A
second thread that connected in between would not find them."""


def native(kind: LogicalType) -> str:  # noqa: C901 - one line for each type
    """DuckDB's type."""
    match kind:
        case Boolean():
            return "BOOLEAN"
        case Int(bits=64, signed=False):
            return "DECIMAL(20,0)"
        case Int(bits=bits):
            return {16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[bits]
        case Decimal(precision=p, scale=s):
            return f"DECIMAL({p},{s})"
        case Float(bits=bits):
            return "FLOAT" if bits == 32 else "DOUBLE"
        case Bytes():
            return "BLOB"
        case Date():
            return "DATE"
        case Time():
            return "TIME"
        case Timestamp(zone=zone):
            return "TIMESTAMP WITH TIME ZONE" if zone else "TIMESTAMP"
        case Array(of=of):
            return f"{native(of)}[]"
    return "VARCHAR"


def fit(kind: LogicalType) -> Fit:
    """Everything fits."""
    if isinstance(kind, Unsupported):
        return Fit(FitKind.UNSUPPORTED, "", "it cannot be read")
    return Fit(FitKind.EXACT, native(kind))


def _native(column: Column) -> str:
    return native(column.type)


_ORDER = ("smallint", "integer", "bigint")


def is_wider(old: str, new: str) -> bool:
    """Integers and floats may grow, and decimals by digits before the point."""
    if old in _ORDER and new in _ORDER:
        return _ORDER.index(old) < _ORDER.index(new)
    if (old, new) == ("float", "double"):
        return True
    if not (old.startswith("decimal(") and new.startswith("decimal(")):
        return False
    (p, s), (q, t) = (tuple(map(int, x[8:-1].split(","))) for x in (old, new))
    return s == t and q >= p


TYPES = Types(_native, is_wider)


@dataclass(frozen=True, slots=True)
class DuckParams:
    """The database's file, and the folder of snapshot files."""

    path: str = param("File", addresses=True)
    folder: str = param("Folder", addresses=True)
    publishes_at_once: bool = param("Publishes at once", default=True)
    current_views: bool = current_views()
    view_suffix: str = view_suffix()


class DuckClient:
    """A `SqlClient`. The identity of a live table is its comment: renames and changed columns keep
    it, and a table that was made by hand has none."""

    def __init__(self, path: str, *, publishes_at_once: bool = True) -> None:
        self.path = path
        self.publishes_at_once = publishes_at_once
        # DuckDB evaluates what a MERGE would insert for rows that match, too: a failing expression
        # fails there. So checks come before.
        self.dialect = replace(engines.duckdb(_native), fail=None)
        self.texts: list[str] = []

    @contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection, once the file is free: one process has it at a time."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with _CONNECTING:
                    connection = duckdb.connect(self.path)
                break
            except duckdb.IOException as err:
                if "lock" not in str(err) or time.monotonic() > until:
                    raise ReplicationError("target:unreachable") from err
                time.sleep(0.01)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        except duckdb.Error as err:
            raise _translated(err) from err
        finally:
            with _CONNECTING:
                connection.close()

    def records(self, names: Names) -> list[dict[str, Any]]:
        """All rows of a table by column name, in order."""
        with self.opened() as db:
            found = db.sql(f"SELECT * FROM {self._sql(trees.table(names))} ORDER BY ALL")
            return list(found.to_arrow_table().to_pylist())

    def arrow(self, column: Column) -> pa.DataType:
        return arrow_type(column.type)

    def make_namespace(self, namespace: Names) -> None:
        with self.opened() as db:
            db.execute(f'CREATE SCHEMA IF NOT EXISTS "{namespace[0]}"')

    def table(self, names: Names) -> LiveColumns | None:
        with self.opened() as db:
            wanted = "schema_name = ? AND table_name = ?"
            found = db.execute(
                f"SELECT comment FROM duckdb_tables() WHERE {wanted}", list(names)
            ).fetchone()
            if found is None:
                found = db.execute(
                    "SELECT md5(sql) FROM duckdb_views() WHERE schema_name = ? AND view_name = ?",
                    list(names),
                ).fetchone()
            if found is None:
                return None
            columns = db.execute(
                f"SELECT column_name, data_type FROM duckdb_columns() WHERE {wanted}"
                " ORDER BY column_index",
                list(names),
            ).fetchall()
            return LiveColumns(found[0] or "", dict(columns))

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        with self.opened() as db:
            rows = db.execute(
                "SELECT table_name FROM duckdb_tables() WHERE schema_name = ? "
                "AND starts_with(table_name, ?)",
                [*namespace, prefix],
            ).fetchall()
            return tuple(name for (name,) in rows)

    def query(self, tree: exp.Query) -> pa.Table:
        with self.opened() as db:
            return db.sql(self._sql(tree)).to_arrow_table()

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        self._make(names, schema.supported)

    def _make(self, names: Names, columns: Sequence[Column]) -> None:
        table = trees.table(names)
        with self._transaction() as db:
            db.execute(self._sql(tables.drop(table)))
            db.execute(self._sql(tables.create(self.dialect, table, columns)))

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        if not appends:
            self._make(names, staged.columns)
        with self._transaction() as db:
            rows = pa.RecordBatchReader.from_batches(staged.arrow, staged.read())
            db.register("rows", rows)
            table = self._sql(trees.table(names))
            db.execute(f"INSERT INTO {table} SELECT * FROM rows")
            db.unregister("rows")

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        with self._transaction() as db:
            self._do(db, steps)

    change = run

    def change_viewed(self, steps: Sequence[Step], view: ViewChange, *, job: str) -> None:
        with self._transaction() as db:
            self._drop_view(db, view)
            self._do(db, steps)
            self._make_view(db, view)

    def _drop_view(self, db: duckdb.DuckDBPyConnection, view: ViewChange) -> None:
        if (dropped := view.dropped()) is not None:
            self._do(db, [dropped])

    def _make_view(self, db: duckdb.DuckDBPyConnection, view: ViewChange) -> None:
        identity = ""
        if (made := view.made(replaces=False)) is not None and view.new is not None:
            self._do(db, [made])
            wanted = "schema_name = ? AND view_name = ?"
            text = f"SELECT md5(sql) FROM duckdb_views() WHERE {wanted}"
            found = db.execute(text, list(view.new)).fetchone()
            identity = found[0] if found else ""
        self._do(db, view.record(identity))

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
        with self._transaction() as db:
            self._drop_view(db, view)
            self._rename(db, staged, live, record)
            self._make_view(db, view)

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        own = uuid.uuid4().hex
        here, there = (self._sql(trees.table(names)) for names in (staged, live))
        marked = f"COMMENT ON TABLE {there} IS '{own}'"
        if not self.publishes_at_once:
            with self._transaction() as db:
                db.execute(f"CREATE OR REPLACE TABLE {there} AS SELECT * FROM {here}")
                db.execute(marked)
            self.run(record(own), job=job)
            return
        with self._transaction() as db:
            self._rename(db, staged, live, record)

    def _rename(
        self,
        db: duckdb.DuckDBPyConnection,
        staged: Names,
        live: Names,
        record: Callable[[str], Sequence[Step]],
    ) -> None:
        own, there = uuid.uuid4().hex, self._sql(trees.table(live))
        db.execute(f"DROP TABLE IF EXISTS {there}")
        db.execute(self._sql(tables.rename(trees.table(staged), trees.table(live[-1:]))))
        db.execute(f"COMMENT ON TABLE {there} IS '{own}'")
        self._do(db, record(own))

    @contextmanager
    def current_rows(self, names: Names, schema: TableSchema, mode: Mode) -> Iterator[HeldRows]:
        if self.table(names) is None:
            raise ReplicationError("target:table-missing", table=schema.id)
        with self.opened() as db:
            rows = db.sql(f"SELECT * FROM {self._sql(trees.table(names))}").to_arrow_table()
        yield HeldRows(rows, schema, mode)

    def drop(self, names: Names) -> None:
        with self._transaction() as db:
            db.execute(self._sql(tables.drop(trees.table(names))))

    def close(self) -> None:
        """Nothing is open."""

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self.opened() as db:
            db.begin()
            try:
                yield db
            except BaseException:
                db.rollback()
                raise
            db.commit()

    def _do(self, db: duckdb.DuckDBPyConnection, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Check):
                if db.execute(self._sql(step.query)).fetchone() is not None:
                    raise ReplicationError(step.code)
            else:
                db.execute(self._sql(step.tree))

    def _sql(self, tree: exp.Expression) -> str:
        text = self.dialect.sql(tree)
        self.texts.append(text)
        return text


def _translated(err: duckdb.Error) -> ReplicationError:
    text = str(err)
    for known, code in CODES.items():
        if known in text:
            return ReplicationError(code)
    if isinstance(err, duckdb.TransactionException):
        return ReplicationError("target:conflict")
    raise err


class DuckChecks:
    """The file can be made."""

    def __init__(self, params: DuckParams) -> None:
        self._params = params

    def connection(self) -> list[Problem]:
        try:
            Path(self._params.path).parent.mkdir(parents=True, exist_ok=True)
            Path(self._params.folder).mkdir(parents=True, exist_ok=True)
        except OSError:
            return [Problem.of("target:not-writable")]
        return []

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        return []

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def names(table: TableId) -> Names:
    """Schema and name, as at the source."""
    return table.schema, table.name


def view_of(params: DuckParams, table: Names) -> Names | None:
    """The view of a table."""
    if not params.current_views:
        return None
    return (*table[:-1], f"{table[-1]}{params.view_suffix}")


def writer(params: DuckParams, _: Any = None) -> TogetherTarget:
    """The target."""
    client = DuckClient(params.path, publishes_at_once=params.publishes_at_once)
    places = SqlPlaces(names, params.folder, view=lambda table: view_of(params, table))
    return TogetherTarget(client, places, TYPES)


PLUGIN = TargetPlugin(
    name=NAME,
    label="DuckDB",
    summary="A database in a file, for tests.",
    params=DuckParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        can_read_rows=True,
        merges_together=True,
        is_replaced_at_once=True,
        modes=tuple(Mode),
    ),
    fit=fit,
    checks=DuckChecks,
    writer=writer,
    is_hidden=True,
)
