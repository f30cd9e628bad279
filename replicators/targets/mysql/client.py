"""MySQL and MariaDB as `SqlMergeTarget` sees them: staging tables, and transactions of rendered
statements.

A statement that makes or changes a table is a commit of its own here. So a publication is one
RENAME TABLE, which readers see in one step, and its progress row follows (`publishes_at_once`).
"""

# ruff: noqa: S608 - names are quoted, and literals are written by `literals`

from __future__ import annotations

import hashlib
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import pyarrow as pa
import pymysql
from sqlglot import exp

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Int, arrow_type
from replicators.connectors.mysql import sql
from replicators.connectors.sql import engines, tables, trees
from replicators.connectors.sql.client import LiveColumns, Names
from replicators.connectors.sql.dbapi import DbApiClient
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import Step
from replicators.connectors.target import CurrentRows
from replicators.targets.mysql import reading
from replicators.targets.mysql.connections import FAULTS, Connection, connect, query, send
from replicators.targets.mysql.errors import DENIED, Refused, translate
from replicators.targets.mysql.index import key_index
from replicators.targets.mysql.literals import inserts, lines, load_data
from replicators.targets.mysql.params import MysqlTargetParams
from replicators.targets.mysql.types import native, shown

SERVER = "SELECT version(), @@lower_case_table_names, @@max_allowed_packet, @@local_infile"
TABLE = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT, t.TABLE_TYPE, c.COLUMN_NAME, c.COLUMN_TYPE,
       c.CHARACTER_SET_NAME, c.COLLATION_NAME
FROM information_schema.TABLES t LEFT JOIN information_schema.COLUMNS c
  ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME
WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s
ORDER BY c.ORDINAL_POSITION
"""
VIEW = """
SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""
TABLES = """
SELECT TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND left(TABLE_NAME, %s) = %s ORDER BY 1
"""
HAS_DATABASE = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
INSERT_BYTES = 4 << 20
MARK = "replicator "
"""The comment of a live table begins with this. It has the table's identity: the catalog has no
other mark that stays when columns are changed."""
_NUMBERS = re.compile(rb"\d+")
_INNODB = exp.EngineProperty(this=exp.Var(this="InnoDB"))
CHANGES = frozenset({"_operation", "_sequence", "_unsent"})
"""A copy with these columns only gets more rows: nothing is looked up by its key."""


def quoted(names: Names) -> str:
    """A table's qualified name."""
    return ".".join(map(sql.name, names))


class MysqlClient(DbApiClient[Connection]):
    """See `connectors.sql.client.SqlClient`. It connects when it is first asked."""

    faults = (*FAULTS, Refused)

    def __init__(self, params: MysqlTargetParams) -> None:
        super().__init__(lambda: connect(params))
        self.params = params
        self._loaded: dict[Names, int] = {}
        self._marked: dict[Names, str] = {}
        self._lock = threading.Lock()
        self._only_inserts = False
        self._makes_own = True

    @cached_property
    def _server(self) -> tuple[bool, bool, int, bool]:
        """Whether it is MariaDB, whether case counts in no name, the longest statement, and whether
        it takes rows as a file."""
        with self.asking() as connection:
            version, folds, packet, takes = query(connection, SERVER)[0]
        is_mariadb = "mariadb" in str(version).lower()
        return is_mariadb, bool(int(folds)), int(packet), bool(int(takes))

    @property
    def folds(self) -> bool:
        """Whether case counts in no name of a table."""
        return self._server[1]

    @cached_property
    def dialect(self) -> SqlDialect:
        """The statements that this server has."""
        return engines.mysql(self.native, is_mariadb=self._server[0])

    def native(self, column: Column) -> str:
        """The type of a column."""
        return native(column, is_mariadb=self._server[0])

    def arrow(self, column: Column) -> pa.DataType:
        """The type in which `load` wants the values of a column."""
        return arrow_type(column.type)

    def make_namespace(self, namespace: Names) -> None:
        """Make the database if it does not exist. No right on it is asked for where it does."""
        with self.asking() as connection:
            if not query(connection, HAS_DATABASE, *namespace):
                query(connection, f"CREATE DATABASE IF NOT EXISTS {sql.name(namespace[0])}")

    def table(self, names: Names) -> LiveColumns | None:
        """The table, its mark as its identity; a view of this name is one too. A view's identity is
        made from its query, which the server shows to whoever made the view."""
        with self.asking() as connection:
            found = query(connection, TABLE, *names)
        # A catalog may find names of another case, which are other tables where case counts.
        rows = [row for row in found if row[0] == names[-1] or self._server[1]]
        if not rows:
            return None
        comment = str(rows[0][1] or "")
        identity = comment if comment.startswith(MARK) else ""
        if rows[0][2] == "VIEW":
            identity = self._identity_of_view(names)
        columns = {n: shown(str(kind), *more) for _, _, _, n, kind, *more in rows if n is not None}
        return LiveColumns(identity, columns)

    def _identity_of_view(self, names: Names) -> str:
        with self.asking() as connection:
            found = query(connection, VIEW, *names)
        text = str(found[0][0] or "") if found else ""
        return f"view {hashlib.sha256(text.encode()).hexdigest()[:32]}" if text else ""

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """The names of a database's tables and views that begin with `prefix`."""
        with self.asking() as connection:
            found = query(connection, TABLES, *namespace, len(prefix), prefix)
        return tuple(str(name) for (name,) in found)

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy; its key's index is made when it is published."""
        self._make(names, schema.supported)
        with self._lock:
            self._loaded[names] = 0

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Fill a table in one transaction, by LOAD DATA or by INSERTs."""
        if not appends:
            self._make(names, staged.columns)
        rows, before = 0, self._loaded.get(names, 0) if appends else 0

        def is_done() -> bool:
            return self._count(names) == before + rows

        with self.transaction(is_done) as connection:
            rows = self._filled(connection, names, staged)
        with self._lock:
            self._loaded[names] = before + rows

    def load_own(
        self, names: Names, staged: StagedFiles, key: Sequence[Column], *, job: str
    ) -> None:
        """See `SessionClient`. A temporary table writes neither the redo log nor the binary log.
        Where the user may not make one, it is a table as `load` makes it."""
        if not (self._makes_own and self._make_own(names, staged.columns, key)):
            self.load(names, staged, job=job)
            return
        with self.transaction() as connection:
            self._filled(connection, names, staged)

    def _make_own(self, names: Names, columns: Sequence[Column], key: Sequence[Column]) -> bool:
        """Make a temporary table; whether the user may."""
        made = tables.create(
            self.dialect, trees.table(names), columns, properties=[exp.TemporaryProperty(), _INNODB]
        )
        if key and all(isinstance(c.type, Int) and not c.nullable for c in key):
            made.this.append(
                "expressions", exp.PrimaryKey(expressions=[trees.name(c.name) for c in key])
            )
        with self.asking() as connection:
            query(connection, f"DROP TABLE IF EXISTS {quoted(names)}")
            try:
                query(connection, self.dialect.sql(made))
            except pymysql.Error as err:
                if err.args[0] not in DENIED:
                    raise
                self._makes_own = False
        return self._makes_own

    def _filled(self, connection: Connection, names: Names, staged: StagedFiles) -> int:
        sends = self._server[3] and not self._only_inserts
        sent = self._sent(connection, names, staged) if sends else None
        return self._inserted(connection, names, staged) if sent is None else sent

    def _inserted(self, connection: Connection, names: Names, staged: StagedFiles) -> int:
        most, rows = min(INSERT_BYTES, self._server[2] - 1024), 0
        for batch in staged.read():
            for text in inserts(quoted(names), batch, most):
                connection.query(text)
            rows += batch.num_rows
        return rows

    def _sent(self, connection: Connection, names: Names, staged: StagedFiles) -> int | None:
        """The number of rows, loaded as a file; None, and nothing loaded, where an INSERT has to
        say what is wrong: LOAD DATA changes a value that does not fit, and only warns."""
        rows = 0

        def parts() -> Iterator[memoryview]:
            nonlocal rows
            for batch in staged.read():
                rows += batch.num_rows
                yield lines(batch, self._server[2] - 1024)

        try:
            told = send(connection, load_data(quoted(names), staged.arrow), parts())
        except pymysql.Error:  # also `TooLong`
            if not connection.open:
                self._only_inserts = True  # what cut it may be a proxy that lets no file by
                raise
        else:
            if told == (rows, 0):
                return rows
        connection.rollback()
        connection.begin()
        return None

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        """Put the staged table in the place of the live one, and then record it. The old table is
        dropped last. A repeat in the same process records what was put there."""
        old = (*staged[:-1], f"{staged[-1]}_old")
        identity = self._marked.get(staged)
        if identity is None:
            identity = f"{MARK}{uuid.uuid4()}"
            self._make_ready(staged, schema, identity)
            with self._lock:
                self._marked[staged] = identity
        now = self.table(live)
        if now is None or now.identity != identity:
            moves = f"{quoted(staged)} TO {quoted(live)}"
            if now is not None:
                moves = f"{quoted(live)} TO {quoted(old)}, {moves}"
            with self.asking() as connection:
                query(connection, f"DROP TABLE IF EXISTS {quoted(old)}")
                query(connection, f"RENAME TABLE {moves}")
        self.run(record(identity), job=job)
        self.drop(old)
        with self._lock:
            self._marked.pop(staged, None)

    def _make_ready(self, staged: Names, schema: TableSchema, identity: str) -> None:
        """Give the staged table its mark and the index of its key: the long part, in which no
        reader waits."""
        actions = [f"COMMENT = {sql.literal(identity)}"]
        if schema.key and not {c.name for c in schema.columns} >= CHANGES:
            key = [schema.column(name) for name in schema.key]
            actions.append(f"ADD INDEX {sql.name('_replicator_key')} ({key_index(key)})")
        with self.asking() as connection:
            query(connection, f"ALTER TABLE {quoted(staged)} {', '.join(actions)}")

    def current_rows(
        self, names: Names, schema: TableSchema, mode: Mode
    ) -> AbstractContextManager[CurrentRows]:
        """The rows, each query of them at one moment."""
        return reading.MysqlRows.of(self, self.params, names, schema, mode)

    def drop(self, names: Names) -> None:
        """Remove a staging table."""
        with self.asking() as connection:
            query(connection, f"DROP TABLE IF EXISTS {quoted(names)}")
        with self._lock:
            self._loaded.pop(names, None)

    def is_open(self, connection: Connection) -> bool:
        """Whether the connection was not lost."""
        return bool(connection.open)

    def noted(self, connection: Connection, err: BaseException) -> None:
        """End a connection whose server waits for a file: its next answer is not to us."""
        if isinstance(err, RuntimeError):
            connection._force_close()

    def translated(self, err: BaseException) -> Exception:
        """An error of PyMySQL as one of ours."""
        return translate(err, self.params)

    def begin(self, connection: Connection) -> None:
        """Begin a transaction."""
        connection.begin()

    def prepare(self, connection: Connection, tree: exp.Expression | exp.Query) -> None:
        """Make the statement's database the session's: a DELETE with an alias needs that."""
        found = tree.find(exp.Table) if isinstance(tree, exp.Delete) else None
        if found is not None and found.db:
            connection.select_db(found.db)

    def found(self, cursor: Any) -> int | None:
        """By the server's message, whose words are in its language: the rows that matched, those
        that changed, and warnings. The count beside it is of either kind, by the connection's
        flags."""
        numbers = _NUMBERS.findall(getattr(cursor._result, "message", None) or b"")
        return int(numbers[-3]) if len(numbers) >= 3 else None

    def _make(self, names: Names, columns: Sequence[Column]) -> None:
        made = tables.create(self.dialect, trees.table(names), columns)
        with self._lock:
            self._marked.pop(names, None)
        with self.asking() as connection:
            query(connection, f"DROP TABLE IF EXISTS {quoted(names)}")
            with connection.cursor() as cursor:
                cursor.execute(self.dialect.sql(made))

    def _count(self, names: Names) -> int:
        """How many rows a table has. It waits for transactions that still add some."""
        with self.asking() as connection:
            text = f"SELECT count(*) FROM {quoted(names)} LOCK IN SHARE MODE"
            return int(query(connection, text)[0][0])
