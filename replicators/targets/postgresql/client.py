"""PostgreSQL as `SqlMergeTarget` sees it: staging tables, and transactions of rendered
statements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property, partial

import psycopg
import pyarrow as pa
from sqlglot import exp

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import arrow_type
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import engines
from replicators.connectors.sql.client import LiveColumns, Names
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import Check, Step
from replicators.connectors.sql.views import ViewChange
from replicators.connectors.target import CurrentRows, DirectCopy
from replicators.targets.postgresql import copying, publishing, reading, staging, views
from replicators.targets.postgresql.connections import Connection, Connections
from replicators.targets.postgresql.encoding import Field
from replicators.targets.postgresql.enums import Enums, add_further, labels_of
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.origins import Origin
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.portions import Portions, records_of
from replicators.targets.postgresql.publishing import quoted
from replicators.targets.postgresql.transactions import Transactions
from replicators.targets.postgresql.types import TYPE_SHOWN, enum_type, native

TABLE = f"""
SELECT c.oid::text, a.attname, {TYPE_SHOWN}
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a
  ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = %s AND c.relname = %s
ORDER BY a.attnum
"""  # noqa: S608 - a part of a query that is ours
TABLES = """
SELECT c.relname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND starts_with(c.relname, %s)
ORDER BY 1
"""
EXTENSIONS = """
SELECT e.extname, n.nspname FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
"""
HAS_NAMESPACE = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s)"


class PostgresqlClient:
    """See `connectors.sql.client.SqlClient`. It connects when it is first asked."""

    publishes_at_once = True

    def __init__(self, params: PostgresqlTargetParams) -> None:
        self.params = params
        self._connections = Connections(params)
        self._transactions = Transactions(self._connections)
        self._origin = Origin(params.origin, self._connections)
        self._loaded: dict[Names, int] = {}
        self._staged: dict[Names, staging.Staged] = {}
        self._enums = Enums(params.schema)
        self._lock = threading.Lock()

    @cached_property
    def dialect(self) -> SqlDialect:
        """The statements that a server of this version has."""
        return engines.postgresql(self.native, self._connections.get().info.server_version // 10000)

    def native(self, column: Column) -> str:
        """The type of a column in this database. An enum type is made before the next statement
        that needs it."""
        self._enums.note(column)
        return native(column, self.params.schema, self._extensions)

    @cached_property
    def _extensions(self) -> dict[str, str]:
        with self._asking() as connection:
            return dict(connection.execute(EXTENSIONS).fetchall())

    def _fields(self, columns: Iterable[Column]) -> tuple[Field, ...]:
        return tuple(
            Field(
                c.name,
                self.native(c),
                labels_of(c) if enum_type(c, self.params.schema) else None,
            )
            for c in columns
        )

    def _make_types(self) -> None:
        with self._asking() as connection:
            self._enums.make(connection)

    def arrow(self, column: Column) -> pa.DataType:
        """The type in which `load` wants the values of a column."""
        return arrow_type(column.type)

    def make_namespace(self, namespace: Names) -> None:
        """Make the schema if it does not exist. Nothing is asked of the database's rights where it
        does."""
        with self._asking() as connection:
            row = connection.execute(HAS_NAMESPACE, list(namespace)).fetchone()
            if row is None or not row[0]:
                text = f"CREATE SCHEMA IF NOT EXISTS {quoted(namespace)}"
                connection.execute(text.encode())

    def table(self, names: Names) -> LiveColumns | None:
        """The table, its OID as its identity; a view or a sequence of this name is one too."""
        with self._asking() as connection:
            rows = connection.execute(TABLE, list(names)).fetchall()
        if not rows:
            return None
        return LiveColumns(rows[0][0], {name: kind for _, name, kind in rows if name is not None})

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """The names of a schema's tables that begin with `prefix`."""
        with self._asking() as connection:
            found = connection.execute(TABLES, [*namespace, prefix]).fetchall()
        return tuple(row[0] for row in found)

    def query(self, tree: exp.Query) -> pa.Table:
        """The rows of a small query."""
        with self._asking() as connection:
            cursor = connection.execute(self.dialect.sql(tree).encode())
            rows, names = cursor.fetchall(), [d.name for d in cursor.description or ()]
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        return pa.Table.from_arrays([pa.array(values) for values in columns], names)

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy. The server logs it from its first row on, since it
        becomes the live table."""
        fields = self._fields(schema.supported)
        self._make_types()
        with self._transactions.begin(job) as connection:
            staging.create(connection, names, fields)
            staging.drop(connection, records_of(names))
        with self._lock:
            self._loaded.pop(names, None)

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Fill an unlogged table by COPY, in one transaction. One that was kept is filled anew if
        it has the same columns."""
        if self._transactions.is_done(job):
            return
        fields = self._fields(staged.columns)
        self._make_types()
        add = partial(add_further, self.params)
        gone = 0
        with self._lock:
            kept = None if appends else self._staged.pop(names, None)
        with self._transactions.begin(job) as connection:
            if not appends:
                gone = staging.emptied(connection, names, fields, kept)
            rows = copying.copy(connection, quoted(names), fields, staged.read(), add_labels=add)
        if not appends:
            with self._lock:
                self._loaded[names] = rows
                self._staged[names] = staging.Staged(fields, rows, gone + rows)

    def release(self, names: Names) -> None:
        """See `KeepingClient`. A small table is kept: making one for each merge fills the catalog
        with dead rows, and syncs files."""
        with self._lock:
            found = self._staged.get(names)
            self._loaded.pop(names, None)
        if found is None or found.rows > staging.MOST_KEPT:
            self.drop(names)

    def direct(self, names: Names, columns: Sequence[Column]) -> DirectCopy:
        """What tasks write the table with."""
        made = Portions(self.params, names, self._fields(columns))
        made.take_over()
        return made

    def keep(self, names: Names, numbers: Sequence[int], *, job: str) -> None:
        """Remove the rows of all other portions."""
        Portions(self.params, names, ()).keep(numbers)

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        """Run the steps as one transaction."""
        if self._transactions.is_done(job):
            return
        self._make_types()
        with self._origin.marking(), self._transactions.begin(job) as connection:
            self._look(connection, steps)
            self._run(connection, steps)

    def change(self, steps: Sequence[Step], *, job: str) -> None:
        """Run steps that change tables as one transaction."""
        self.run(steps, job=job)

    def change_viewed(self, steps: Sequence[Step], view: ViewChange, *, job: str) -> None:
        """See `AtomicViews`. PostgreSQL changes no column that a view shows, so the view goes
        first."""
        if self._transactions.is_done(job):
            return
        self._make_types()
        with self._transactions.begin(job) as connection:
            there = views.remove(connection, view.old, may_stay=view.new == view.old)
            self._run(connection, steps)
            self._make_view(connection, view, there)

    def _make_view(self, connection: Connection, view: ViewChange, there: views.Gone) -> None:
        made, identity = view.made(replaces=there.stays), ""
        if made is not None and view.new is not None:
            views.make(connection, view.new, self.dialect.sql(made.tree), there)
            identity = _identity(connection, view.new)
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
        if self._transactions.is_done(job):
            return
        with self._transactions.begin(job) as connection:
            publishing.publish(connection, staged, live, schema)
            self._run(connection, record(_identity(connection, live)))

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
        """See `AtomicViews`. The key is built first, so that readers of the view don't wait for
        it."""
        if self._transactions.is_done(job):
            return
        with self._transactions.begin(job) as connection:
            publishing.make_ready(connection, staged, schema)
            there = views.remove(connection, view.old, may_stay=view.new == view.old)
            publishing.publish(connection, staged, live, schema, is_ready=True)
            self._run(connection, record(_identity(connection, live)))
            self._make_view(connection, view, there)

    def current_rows(
        self, names: Names, schema: TableSchema, mode: Mode
    ) -> AbstractContextManager[CurrentRows]:
        """The rows in a snapshot that tasks share."""
        return reading.opened(self.params, names, schema, mode)

    def drop(self, names: Names) -> None:
        """Remove a staging table."""
        with self._asking() as connection:
            staging.drop(connection, names)
        with self._lock:
            self._loaded.pop(names, None)
            self._staged.pop(names, None)

    def close(self) -> None:
        """Remove the staging tables that were kept, and close all connections. A table that can't
        be removed now is removed by the next process."""
        with self._lock:
            kept = list(self._staged)
        with suppress(ReplicationError):
            for names in kept:
                self.drop(names)
        self._connections.close()

    @contextmanager
    def _asking(self) -> Iterator[Connection]:
        """The thread's connection, outside of any transaction."""
        try:
            yield self._connections.get()
        except psycopg.Error as err:
            raise translate(err, self.params) from err

    def _run(self, connection: Connection, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Check):
                if connection.execute(self.dialect.sql(step.query).encode()).fetchone() is not None:
                    raise ReplicationError(step.code)
            else:
                connection.execute(self.dialect.sql(step.tree).encode())

    def _look(self, connection: Connection, steps: Sequence[Step]) -> None:
        """Let the staging tables that the steps read be whole."""
        trees = [step.query if isinstance(step, Check) else step.tree for step in steps]
        found = {tuple(t.parts) for tree in trees for t in tree.find_all(exp.Table)}
        for names in {tuple(part.name for part in parts) for parts in found}:
            self._require_rows(connection, names)

    def _require_rows(self, connection: Connection, names: Names) -> None:
        """After a crash of the server, an unlogged table is there but empty. Then what was loaded
        into it has to be loaded again. A crash after this look ends the transaction."""
        with self._lock:
            is_filled = self._loaded.get(names, 0) > 0
        if is_filled:
            text = f"SELECT FROM {quoted(names)} LIMIT 1"
            if connection.execute(text.encode()).fetchone() is None:
                raise ReplicationError("target:postgresql-lost")


def _identity(connection: Connection, names: Names) -> str:
    """The OID of what this transaction made."""
    row = connection.execute(TABLE, list(names)).fetchone()
    assert row is not None, "it was made in this transaction"
    return str(row[0])
