"""Preflight of a MySQL or MariaDB target: whether it can be reached and written, and which names
are taken. Makes and changes nothing: rights are tried on tables that do not exist."""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

import pymysql

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.view_fields import view_problems, view_row
from replicators.targets.mysql import naming
from replicators.targets.mysql.connections import Connection, connect, query
from replicators.targets.mysql.errors import DENIED, translate
from replicators.targets.mysql.params import VIEW_RIGHT, MysqlTargetParams, rights

MOST_COLUMNS = 1000
"""InnoDB has 1,017; our staging table has some more than the table."""
OLDEST_MYSQL, OLDEST_MARIADB = (8, 0, 17), (10, 6, 0)
SERVER = """
SELECT version(), @@global.read_only, @@log_bin, @@binlog_format,
       @@innodb_flush_log_at_trx_commit, @@sync_binlog
"""
TABLES = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
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
Names = tuple[str, str]


class MysqlTargetChecks(Closing):
    """See `connectors.target.TargetChecks`. It connects only when asked, so that creating it never
    fails."""

    def __init__(self, params: MysqlTargetParams) -> None:
        self.params = params

    def connection(self) -> list[Problem]:
        """Problems of server and user. An unreachable server is a problem, not an exception."""
        try:
            with closing(connect(self.params)) as connection:
                found = list(_of_server(connection))
                if self.params.database:
                    found += self._rights(connection, [self.params.database])
                return found
        except (pymysql.Error, ReplicationError) as err:
            return [self._problem(err)]

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Problems of the chosen tables: names, rights and tables that are taken."""
        places = {t.id: naming.names(self.params, t.id) for t in tables}
        found = [p for t in tables for p in _named(t, places[t.id])]
        try:
            with closing(connect(self.params)) as connection:
                folds = bool(query(connection, "SELECT @@lower_case_table_names")[0][0])
                folded = {
                    t: tuple(n.casefold() for n in place) if folds else place
                    for t, place in places.items()
                }
                found += shared_names(tables, folded.__getitem__)
                found += self._rights(connection, sorted({n[0] for n in places.values()}))
                found += _taken(connection, places, replicator, folds=folds)
        except (pymysql.Error, ReplicationError) as err:
            found.append(self._problem(err))
        return found

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """See `ViewChecks`."""
        tables = {t.id: naming.names(self.params, t.id) for t in chosen}
        wanted = {t.id: naming.view(self.params, tables[t.id]) for t in viewed}
        views = {table: place for table, place in wanted.items() if place is not None}
        if not views:
            return []
        try:
            with closing(connect(self.params)) as connection:
                folds = bool(query(connection, "SELECT @@lower_case_table_names")[0][0])
                taken = _taken_views(connection, views, tables, replicator, folds=folds)
        except (pymysql.Error, ReplicationError) as err:
            return [self._problem(err)]

        def folded(places: Mapping[TableId, Names]) -> dict[TableId, tuple[str, ...]]:
            return {t: tuple(n.casefold() if folds else n for n in p) for t, p in places.items()}

        return list(view_problems(folded(views), folded(tables), taken))

    def close(self) -> None:
        """Nothing is held."""

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


def _taken(
    connection: Connection, places: Mapping[TableId, Names], replicator: str, *, folds: bool
) -> Iterator[Problem]:
    """Places where a table lies that is not this replicator's. Each database is asked once."""
    for database, some in groupby(sorted(places.items(), key=_database), key=_database):
        found = {str(name) for (name,) in query(connection, TABLES, database)}
        owners: dict[str, str] = {}
        if naming.PROGRESS in found:
            progress = f"{sql.name(database)}.{sql.name(naming.PROGRESS)}"
            owners = dict(query(connection, f"SELECT target_table, replicator FROM {progress}"))
        present = {name.casefold() for name in found} if folds else found
        for table, (_, name) in some:
            is_there = (name.casefold() if folds else name) in present
            if is_there and (not replicator or owners.get(name) != replicator):
                yield Problem.of("target:table-taken", table=table, target=f"{database}.{name}")


def _taken_views(
    connection: Connection,
    views: Mapping[TableId, Names],
    tables: Mapping[TableId, Names],
    replicator: str,
    *,
    folds: bool,
) -> list[TableId]:
    """The tables at whose view's place something lies that is not this replicator's."""
    taken = []
    for database, some in groupby(sorted(views.items(), key=_database), key=_database):
        found = {str(name) for (name,) in query(connection, TABLES, database)}
        own: dict[str, str] = {}
        if naming.PROGRESS in found and replicator:
            progress = f"{sql.name(database)}.{sql.name(naming.PROGRESS)}"
            text = f"SELECT target_table, table_uuid FROM {progress} WHERE replicator = %s"
            own = dict(query(connection, text, replicator))
        present = {name.casefold() for name in found} if folds else found
        for table, (_, name) in some:
            is_there = (name.casefold() if folds else name) in present
            if is_there and own.get(view_row(tables[table][1])) != name:
                taken.append(table)
    return taken


def _database(placed: tuple[TableId, Names]) -> str:
    return placed[1][0]


def _named(table: TableSchema, place: Names) -> Iterator[Problem]:
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
