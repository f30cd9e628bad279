"""Preflight of a MySQL or MariaDB target: whether it can be reached and written, and which names
are taken. Makes and changes nothing: rights are tried on tables that do not exist."""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pymysql

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.checks import SqlChecks
from replicators.connectors.sql.places import one_per_namespace
from replicators.targets.mysql import naming
from replicators.targets.mysql.client import MysqlClient
from replicators.targets.mysql.connections import FAULTS, Connection, connect, query
from replicators.targets.mysql.errors import DENIED, translate
from replicators.targets.mysql.params import VIEW_RIGHT, MysqlTargetParams, rights

MOST_COLUMNS = 1000
"""InnoDB has 1,017; our staging table has some more than the table."""
OLDEST_MYSQL, OLDEST_MARIADB = (8, 0, 17), (10, 6, 0)
SERVER = """
SELECT version(), @@global.read_only, @@log_bin, @@binlog_format,
       @@innodb_flush_log_at_trx_commit, @@sync_binlog
"""
PROBE = "_replicator_probe"
TRIES = {
    "SELECT": "SELECT 1 FROM {} LIMIT 0",
    "INSERT": "INSERT INTO {} VALUES (1)",
    "UPDATE": "UPDATE {} SET a = 1",
    "DELETE": "DELETE FROM {}",
    "CREATE": "CREATE TABLE {} (a INT, a INT)",
    "DROP": "DROP TABLE {}",
    "ALTER": "ALTER TABLE {} ADD COLUMN a INT",
    "INDEX": "CREATE INDEX i ON {} (a)",
    VIEW_RIGHT: "CREATE VIEW {} AS SELECT 1 AS a, 1 AS a",
}
Names = tuple[str, ...]


class MysqlTargetChecks(SqlChecks):
    """See `connectors.target.TargetChecks`. It connects only when asked, so that creating it never
    fails."""

    params: MysqlTargetParams
    progress = staticmethod(one_per_namespace)

    def connection(self) -> list[Problem]:
        """Problems of server and user. An unreachable server is a problem, not an exception."""
        try:
            with closing(connect(self.params)) as connection:
                found = list(_of_server(connection))
                if self.params.database:
                    found += self._rights(connection, [self.params.database])
                return found
        except (*FAULTS, ReplicationError) as err:
            return [self._problem(err)]

    def client(self) -> MysqlClient:
        """A client."""
        return MysqlClient(self.params)

    def place(self, table: TableId) -> Names:
        """Where the copy of a table lies."""
        return naming.names(self.params, table)

    def view(self, place: Names) -> Names | None:
        """The view of a copy."""
        return naming.view(self.params, place)

    def folds(self, client: MysqlClient) -> bool:
        """Whether case counts in no name of a table."""
        return client.folds

    def rights(self, client: MysqlClient, spaces: Sequence[Names]) -> list[Problem]:
        """The rights on the databases."""
        with client.asking() as connection:
            return list(self._rights(connection, [database for (database,) in spaces]))

    def named(self, table: TableSchema, place: Names) -> Iterator[Problem]:
        """What is wrong with the names of a table and its columns."""
        if place[1].startswith(naming.OWN) or place[0].lower() in naming.OWN_DATABASES:
            yield Problem.of("target:name-reserved", table=table.id, target=".".join(place))
        for name in place:
            if naming.fault(name):
                yield Problem.of(
                    "target:mysql-name", table=table.id, target=name, reason=naming.fault(name)
                )
        if len(table.supported) > MOST_COLUMNS:
            yield Problem.of(
                "target:mysql-too-many-columns", table=table.id, count=len(table.supported)
            )
        faults = {c.name: naming.fault(c.name) for c in table.supported if naming.fault(c.name)}
        faults |= {
            one: f"column `{other}` has the same name but for its case"
            for one, other in naming.shared(table)
        }
        for name, reason in faults.items():
            yield Problem.of("target:mysql-column-name", table=table.id, column=name, reason=reason)

    def _problem(self, err: Exception) -> Problem:
        found = translate(err, self.params)
        assert isinstance(found, ReplicationError)
        facts: dict[str, Any] = dict(found.facts)
        return Problem.of(found.code, **facts)

    def _rights(self, connection: Connection, databases: Sequence[str]) -> Iterator[Problem]:
        """The rights that the user lacks on each database; those to make it are among them."""
        needed = rights(has_views=self.params.current_views)
        for database in databases:
            if naming.fault(database):
                continue
            quoted = sql.name(database)
            missing = [r for r in needed if _is_denied(connection, TRIES[r], quoted)]
            if missing:
                yield Problem.of(
                    "target:mysql-rights",
                    user=f"{sql.literal(self.params.user)}@'%'",
                    rights=", ".join(missing),
                    target=database,  # backticks would end the sentence's code
                )


def _is_denied(connection: Connection, text: str, database: str) -> bool:
    """Whether a statement is refused for a right. Where it is allowed it fails too: there is no
    such table, and no table has two columns of one name."""
    try:
        query(connection, text.format(f"{database}.{sql.name(PROBE)}"))
    except pymysql.Error as err:
        return err.args[0] in DENIED
    return False


def _version(text: str) -> tuple[int, ...]:
    found = re.findall(r"\d+", text.removeprefix("5.5.5-").split("-")[0])
    return tuple(map(int, found[:3]))


def _of_server(connection: Connection) -> Iterator[Problem]:
    text, is_read_only, has_log, log_format, flush, sync = query(connection, SERVER)[0]
    is_mariadb = "mariadb" in str(text).lower()
    if _version(str(text)) < (OLDEST_MARIADB if is_mariadb else OLDEST_MYSQL):
        yield Problem.of("target:mysql-version", version=str(text))
    if int(is_read_only) if str(is_read_only).isdigit() else str(is_read_only) == "ON":
        yield Problem.of("target:mysql-read-only")
    if has_log and log_format == "STATEMENT":
        yield Problem.of("target:mysql-statement-log")
    settings = {
        "innodb_flush_log_at_trx_commit": flush,
        **({"sync_binlog": sync} if has_log else {}),
    }
    for setting, value in settings.items():
        if int(value) != 1:
            yield Problem.of(
                "target:mysql-durability",
                severity=Severity.WARNING,
                setting=setting,
                value=value,
            )
