"""Preflight of a MySQL or MariaDB source: whether it can be reached and followed, and its tables
copied. Changes nothing there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.filters.problems import filter_problems
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.mysql import sql
from replicators.connectors.problems.columns import column_problems
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.mysql import filters
from replicators.sources.mysql.cascades import are_logged, cascades
from replicators.sources.mysql.catalog import describe
from replicators.sources.mysql.connections import Connection, Server, connect, query, server_of
from replicators.sources.mysql.control import retention_hours
from replicators.sources.mysql.dump import server_id
from replicators.sources.mysql.engines import kinds, unlogged_problems
from replicators.sources.mysql.errors import translate
from replicators.sources.mysql.packed import reported, unpacking
from replicators.sources.mysql.params import MysqlParams
from replicators.sources.mysql.rights import (
    DENIED,
    may_lock,
    may_see_readers,
    missing_rights,
    unreadable,
)
from replicators.sources.mysql.types import PARTIAL

SHORT_HOURS = 24.0
OLDEST = {"mariadb": (10, 5, 0), "mysql": (8, 0, 14)}
NAMES = {"mariadb": "MariaDB", "mysql": "MySQL"}
HAVE_VIEWS = frozenset({"innodb", "rocksdb"})


@dataclass(frozen=True, slots=True)
class Setting:
    """A server variable and the one value that it needs so that changes can be followed, in each of
    its spellings."""

    name: str
    wanted: tuple[str, ...]
    statement: str


SETTINGS = (
    Setting("log_bin", ("ON", "1"), "log_bin = ON (in the configuration)"),
    Setting("binlog_format", ("ROW",), "SET GLOBAL binlog_format = 'ROW';"),
    Setting("binlog_row_image", ("FULL",), "SET GLOBAL binlog_row_image = 'FULL';"),
    Setting("binlog_row_metadata", ("FULL",), "SET GLOBAL binlog_row_metadata = 'FULL';"),
    Setting("binlog_row_value_options", ("",), "SET GLOBAL binlog_row_value_options = '';"),
    # Otherwise MariaDB logs an ALTER when it begins and again when it ends, so each step would come
    # twice.
    Setting("binlog_alter_two_phase", ("OFF", "0"), "SET GLOBAL binlog_alter_two_phase = OFF;"),
    # With 2 the catalog has names as they were written, and the log has them in lower case.
    Setting(
        "lower_case_table_names",
        ("1", "0"),
        "lower_case_table_names = 1 (before the server's first start)",
    ),
)
REPLICA = Setting(
    "log_replica_updates", ("ON", "1"), "log_replica_updates = ON (in the configuration)"
)


class MysqlChecks(Closing):
    """See `connectors.source.Checks`. It connects only when asked, so that creating it never
    fails."""

    def __init__(self, params: MysqlParams) -> None:
        self.params = params

    def connection(self) -> list[Problem]:
        """Problems of server and user. An unreachable server is a problem, not an exception."""
        try:
            with connect(self.params) as connection:
                return list(self._server(connection))
        except (pymysql.Error, OSError, ReplicationError) as err:
            return [self._problem(err)]

    def _problem(self, err: Exception) -> Problem:
        found = translate(err, self.params)
        assert isinstance(found, ReplicationError)
        facts: dict[str, Any] = dict(found.facts)
        return Problem.of(found.code, **facts)

    def _server(self, connection: Connection) -> Iterator[Problem]:
        server = server_of(connection)
        oldest = OLDEST[server.flavour]
        if server.version < oldest:
            needed = f"{NAMES[server.flavour]} {'.'.join(map(str, oldest[:2]))} or newer"
            yield Problem.of("source:server-version", version=server.version_text, needed=needed)
            return
        if "vitess" in server.version_text.lower():
            yield Problem.of(
                "source:server-version", version="Vitess", needed="a MySQL or MariaDB server itself"
            )
            return
        yield from self._settings(connection, server)
        yield from missing_rights(connection, server, self.params)
        hours = retention_hours(connection)
        if hours is not None and hours < SHORT_HOURS:
            in_days = server.is_mariadb and server.version < (10, 6, 1)
            setting = "expire_logs_days = 7" if in_days else "binlog_expire_logs_seconds = 604800"
            statement = f"SET GLOBAL {setting};"
            yield Problem.of("source:log-short", hours=f"{hours:g}", statement=statement)
        else:
            kept = "without a limit of time" if hours is None else f"for {hours:g} hours"
            yield Problem.of("source:log-kept", severity=Severity.INFO, kept=kept)
        server_id(connection, self.params, "")
        if self.params.server_id and server.is_mariadb and not may_see_readers(connection):
            user = f"{sql.literal(self.params.user)}@'%'"
            yield Problem.of(
                "source:server-id-unknown",
                severity=Severity.WARNING,
                user=user,
                number=self.params.server_id,
                statement=f"GRANT REPLICATION MASTER ADMIN ON *.* TO {user};",
            )

    def _settings(self, connection: Connection, server: Server) -> Iterator[Problem]:
        values = {n.lower(): v for n, v in query(connection, "SHOW GLOBAL VARIABLES")}
        wanted = [s for s in SETTINGS if s.name in values]
        if _is_replica(connection, server):
            old = Setting(
                "log_slave_updates", REPLICA.wanted, "log_slave_updates = ON (in the configuration)"
            )
            wanted.append(REPLICA if REPLICA.name in values else old)
        for setting in wanted:
            value = str(values.get(setting.name, ""))
            if value.upper() not in setting.wanted:
                yield Problem.of(
                    "source:setting",
                    setting=setting.name,
                    value=value or "empty",
                    wanted=setting.wanted[0] or "empty",
                    statement=setting.statement,
                )

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        """Problems of the chosen tables, in their order. Raises `source:*` where the server can't
        be asked."""
        if not tables:
            return [Problem.of("source:no-tables")]
        try:
            with connect(self.params) as connection:
                server = server_of(connection)
                schemas = describe(connection, tables, self.params.zero_dates)
                engines = kinds(connection, [t.id for t in tables])
                closed = unreadable(connection, tables)
                statements = unpacking(
                    connection, [s for t, s in schemas.items() if t not in closed]
                )
                readable = [t.id for t in tables if t.id not in closed]
                unlogged = {} if are_logged(connection, server) else cascades(connection, readable)
                unlockable = {
                    t
                    for t, schema in schemas.items()
                    if not (schema.key or server.is_mariadb or t in closed)
                    and not may_lock(connection, t)
                }
        except (pymysql.Error, OSError) as err:
            raise translate(err, self.params) from err
        found: list[Problem] = []
        for selection in tables:
            schema = schemas.get(selection.id)
            if selection.id in closed:
                found.append(self._unreadable(selection.id))
                continue
            if schema is None or selection.id not in engines:
                found.append(Problem.of("source:table-missing", table=selection.id))
                continue
            is_unlockable = selection.id in unlockable
            found += self._table(
                selection, schema, engines[selection.id], is_unlockable=is_unlockable
            )
            found += unlogged.get(selection.id, [])
        return [reported(p, statements) for p in found]

    def _unreadable(self, table: TableId) -> Problem:
        user = f"{sql.literal(self.params.user)}@'%'"
        return Problem.of("source:select-right", table=table, user=user, quoted=sql.table(table))

    def _table(
        self,
        selection: TableSelection,
        schema: TableSchema,
        engine: tuple[str, str],
        *,
        is_unlockable: bool,
    ) -> Iterator[Problem]:
        name, kind = engine
        yield from unlogged_problems(schema.id, name, kind)
        if not schema.key:
            yield self._keyless(
                schema.id, has_views=name.lower() in HAVE_VIEWS, is_unlockable=is_unlockable
            )
        yield from column_problems(selection, schema, PARTIAL)
        yield from filter_problems(selection, schema, filters.refusal)

    def _keyless(self, table: TableId, *, has_views: bool, is_unlockable: bool) -> Problem:
        """The problem of a table without a key. It is copied in a consistent snapshot of its own,
        which not every engine and user can have (CORRECTNESS 19)."""
        if not has_views:
            return Problem.of("source:key-needed", table=table)
        if is_unlockable:
            user = f"{sql.literal(self.params.user)}@'%'"
            statement = f"GRANT LOCK TABLES ON {sql.name(table.schema)}.* TO {user};"
            return Problem.of(
                "source:right-missing",
                table=table,
                user=user,
                right="LOCK TABLES",
                statement=statement,
            )
        return Problem.of(
            "source:kept-by-count", severity=Severity.WARNING, table=table, quoted=sql.table(table)
        )

    def close(self) -> None:
        """Nothing is held."""


def _is_replica(connection: Connection, server: Server) -> bool:
    """Whether the server is a replica, over any of its connections. If the user may not ask that, a
    MariaDB that ever applied another server's changes counts as one."""
    statement = "SHOW SLAVE STATUS"
    if server.is_mariadb:
        statement = "SHOW ALL SLAVES STATUS"
    elif server.version >= (8, 0, 22):
        statement = "SHOW REPLICA STATUS"
    try:
        return bool(query(connection, statement))
    except pymysql.Error as err:
        if err.args[0] not in DENIED:
            raise
    # In MySQL, following needs the same right, so its absence is reported already.
    return server.is_mariadb and bool(query(connection, "SELECT @@global.gtid_slave_pos")[0][0])
