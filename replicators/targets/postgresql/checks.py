"""Preflight of a PostgreSQL target: whether it can be reached and written, and which names are
taken. Makes and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.postgres import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.taking import rules_of, take_over_problems
from replicators.connectors.view_fields import VIEW_ROW, view_problems
from replicators.targets.postgresql import dependents, naming
from replicators.targets.postgresql.connections import Connection, connect
from replicators.targets.postgresql.errors import translate
from replicators.targets.postgresql.origins import FUNCTIONS
from replicators.targets.postgresql.params import PostgresqlTargetParams
from replicators.targets.postgresql.publishing import quoted
from replicators.targets.postgresql.types import enum_name, extension_of
from replicators.targets.postgresql.writer import writer

MINIMUM_VERSION = 140000
MOST_COLUMNS = 1580
"""PostgreSQL has 1,600 columns; our staging table has some more than the table."""
SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
       pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool,
       pg_encoding_to_char(d.encoding),
       t.spcname, has_tablespace_privilege(t.oid, 'CREATE') OR t.oid = d.dattablespace
FROM pg_database d
LEFT JOIN pg_tablespace t ON t.spcname = nullif(current_setting('default_tablespace'), '')
WHERE d.datname = current_database()
"""
SCHEMAS = """
SELECT n.nspname, has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE')
FROM pg_namespace n WHERE n.nspname = ANY(%s)
"""
TABLES = """
SELECT n.nspname, c.relname, c.oid::bigint, pg_has_role(current_user, c.relowner, 'USAGE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS w(schema_name, table_name)
  ON w.schema_name = n.nspname AND w.table_name = c.relname
"""
OWNERS = "SELECT target_table, replicator FROM {} WHERE target_table = ANY(%s)"
KEYS = """
SELECT array_agg(a.attname::text)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
  AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""
RULES = """
SELECT 'the constraint ' || conname FROM pg_constraint
WHERE (conrelid = %(oid)s AND contype IN ('f', 'x', 'c')) OR (confrelid = %(oid)s AND contype = 'f')
UNION ALL SELECT 'the unique index ' || c.relname
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %(oid)s AND i.indisunique AND NOT i.indisprimary
UNION ALL SELECT 'the generated column ' || attname FROM pg_attribute
WHERE attrelid = %(oid)s AND NOT attisdropped AND (attidentity = 'a' OR attgenerated <> '')
UNION ALL SELECT 'the trigger ' || tgname FROM pg_trigger
WHERE tgrelid = %(oid)s AND NOT tgisinternal
ORDER BY 1
"""
REFUSED = """
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY(%s)
  AND NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 1
"""
VIEWS = """
SELECT target_table, table_uuid FROM {} WHERE starts_with(target_table, %s) AND replicator = %s
"""
Names = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Live:
    """A table that the target has: its OID, whether we may alter it, and the replicator whose it
    is."""

    oid: int
    is_owned: bool
    replicator: str


class PostgresqlTargetChecks(Closing):
    """See `connectors.target.TargetChecks`. It connects only when asked, so that creating it never
    fails."""

    def __init__(self, params: PostgresqlTargetParams) -> None:
        self.params = params

    def connection(self) -> list[Problem]:
        """Problems of server, database and role. An unreachable server is a problem, not an
        exception."""
        try:
            with connect(self.params) as connection:
                return list(self._server(connection))
        except (psycopg.Error, ReplicationError) as err:
            return [self._problem(err)]

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Problems of the chosen tables: names, rights and tables that are taken."""
        places = {t.id: naming.names(self.params, t.id) for t in tables}
        found = [p for t in tables for p in _named(t, places[t.id])]
        found += shared_names(tables, places.__getitem__)
        try:
            with connect(self.params) as connection:
                schemas = {n[0] for n in places.values()} | self._of_enums(tables)
                found += self._schemas(connection, sorted(schemas))
                found += self._extensions(connection, tables)
                live = self._live(connection, list(places.values()))
                found += _bound(connection, places, live, replicator)
        except (psycopg.Error, ReplicationError) as err:
            return [*found, self._problem(err)]
        return found + [p for t in tables for p in self._taken(t, places[t.id], live, replicator)]

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
            with connect(self.params) as connection:
                places = list(views.values())
                columns = [[p[0] for p in places], [p[1] for p in places]]
                rows = connection.execute(TABLES, columns).fetchall()
                there = {(schema, name) for schema, name, *_ in rows}
                own = _own_views(connection, {schema for schema, _ in there}, replicator)
        except (psycopg.Error, ReplicationError) as err:
            return [self._problem(err)]
        taken = [t for t, p in views.items() if p in there and (*tables[t], p[1]) not in own]
        return list(view_problems(views, tables, taken))

    def take_over(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """See `TakeOverChecks`."""
        places = {t.id: naming.names(self.params, t.id) for t in tables}
        with closing(writer(self.params, "")) as target:
            found = take_over_problems(target, tables, replicator)
        faulty = {p.table for p in found}
        try:
            with connect(self.params) as connection:
                live = self._live(connection, list(places.values()))
                for table in tables:
                    there = live.get(places[table.id])
                    if there is not None and table.id not in faulty:
                        found += self._ready(connection, table, there, quoted(places[table.id]))
        except (psycopg.Error, ReplicationError) as err:
            return [*found, self._problem(err)]
        return found

    def _ready(
        self, connection: Connection, table: TableSchema, live: _Live, target: str
    ) -> Iterator[Problem]:
        """What keeps an existing table from getting every change."""
        if live.replicator:
            return
        if not live.is_owned:
            user = sql.name(self.params.user)
            yield Problem.of("target:postgresql-owner", table=table.id, target=target, user=user)
        keys = [set(k) for (k,) in connection.execute(KEYS, [live.oid]).fetchall()]
        rules = [r for (r,) in connection.execute(RULES, {"oid": live.oid}).fetchall()]
        yield from rules_of(table, target, keys, rules)

    def close(self) -> None:
        """Nothing is held."""

    def _problem(self, err: Exception) -> Problem:
        found = translate(err, self.params)
        assert isinstance(found, ReplicationError)
        facts: dict[str, Any] = dict(found.facts)
        return Problem.of(found.code, **facts)

    def _server(self, connection: Connection) -> Iterator[Problem]:
        row = connection.execute(SERVER).fetchone()
        assert row is not None, "a session has a database"
        number, version, is_read_only, encoding, tablespace, may_use = row
        facts: dict[str, Any] = {"user": sql.name(self.params.user)}
        if number < MINIMUM_VERSION:
            yield Problem.of("target:postgresql-version", version=version.split()[0])
        if is_read_only:
            yield Problem.of("target:postgresql-read-only")
        if encoding != "UTF8":
            yield Problem.of(
                "target:postgresql-encoding", database=self.params.database, encoding=encoding
            )
        if self.params.origin:
            yield from self._two_way(connection)
        if self.params.schema:
            yield from self._schemas(connection, [naming.cut(self.params.schema)])
        if tablespace is not None and not may_use:
            yield Problem.of(
                "target:postgresql-tablespace", tablespace=sql.name(tablespace), **facts
            )

    def _two_way(self, connection: Connection) -> Iterator[Problem]:
        """What marked writes and the commit times of rows need."""
        row = connection.execute("SHOW track_commit_timestamp").fetchone()
        if row is None or row[0] != "on":
            yield Problem.of("target:postgresql-commit-times")
        user = sql.name(self.params.user)
        refused = [f for (f,) in connection.execute(REFUSED, [list(FUNCTIONS)]).fetchall()]
        if refused:
            statements = " ".join(
                f"`GRANT EXECUTE ON FUNCTION {function} TO {user};`" for function in refused
            )
            yield Problem.of("target:postgresql-origin-right", user=user, statements=statements)

    def _schemas(self, connection: Connection, wanted: list[str]) -> Iterator[Problem]:
        """Rights on each schema; on the database where a schema is still to be made."""
        rights: dict[str, bool] = dict(connection.execute(SCHEMAS, [wanted]).fetchall())
        row = connection.execute(
            "SELECT has_database_privilege(current_database(), 'CREATE')"
        ).fetchone()
        user, database = sql.name(self.params.user), sql.name(self.params.database)
        for schema in wanted:
            target = sql.name(schema)
            if rights.get(schema, True) is False:
                yield Problem.of("target:postgresql-create-table", target=target, user=user)
            elif schema not in rights and not (row and row[0]):
                yield Problem.of(
                    "target:postgresql-create-schema", target=target, user=user, database=database
                )

    def _of_enums(self, tables: Sequence[TableSchema]) -> set[str]:
        """The schemas in which enum types are made."""
        found = [enum_name(column) for table in tables for column in table.supported]
        return {self.params.schema or naming.cut(enum[0]) for enum in found if enum is not None}

    def _extensions(
        self, connection: Connection, tables: Sequence[TableSchema]
    ) -> Iterator[Problem]:
        """Columns of a type that this database lacks."""
        wanted = [(t, c) for t in tables for c in t.supported if extension_of(c)]
        if not wanted:
            return
        known = {name for (name,) in connection.execute("SELECT extname FROM pg_extension")}
        for table, column in wanted:
            if extension_of(column) not in known:
                yield Problem.of(
                    "target:postgresql-extension",
                    severity=Severity.WARNING,
                    table=table.id,
                    column=column.name,
                    extension=extension_of(column),
                    database=self.params.database,
                )

    def _live(self, connection: Connection, places: Sequence[Names]) -> dict[Names, _Live]:
        columns = [[n[0] for n in places], [n[1] for n in places]]
        rows = connection.execute(TABLES, columns).fetchall()
        names: dict[str, list[str]] = defaultdict(list)
        for schema, name, _, _ in rows:
            names[schema].append(name)
        owners = {
            (schema, name): owner
            for schema, wanted in names.items()
            for name, owner in _owners(connection, schema, wanted)
        }
        return {
            (schema, name): _Live(oid, is_owned, owners.get((schema, name), ""))
            for schema, name, oid, is_owned in rows
        }

    def _taken(
        self, table: TableSchema, place: Names, known: dict[Names, _Live], replicator: str
    ) -> Iterator[Problem]:
        live, target = known.get(place), quoted(place)
        if live is None:
            return
        if live.oid == table.native_id and place == (table.source_id.schema, table.source_id.name):
            yield Problem.of("target:postgresql-same-table", table=table.id)
        elif not replicator or live.replicator != replicator:
            yield Problem.of("target:table-taken", table=table.id, target=".".join(place))
        elif not live.is_owned:
            yield Problem.of(
                "target:postgresql-owner",
                table=table.id,
                target=target,
                user=sql.name(self.params.user),
            )


def _bound(
    connection: Connection, places: dict[TableId, Names], live: dict[Names, _Live], replicator: str
) -> Iterator[Problem]:
    """Live tables of this replicator that a re-sync can't replace."""
    for table, place in places.items():
        found = live.get(place)
        if replicator and found is not None and found.replicator == replicator:
            bound = dependents.bound(connection, found.oid)
            if bound:
                yield Problem.of(
                    "target:postgresql-bound",
                    severity=Severity.INFO,
                    table=table,
                    dependents=", ".join(bound),
                )


def _owners(connection: Connection, schema: str, wanted: list[str]) -> list[tuple[str, str]]:
    """Whose the tables of a schema are, by our own progress table there."""
    progress = (schema, naming.PROGRESS)
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [quoted(progress)]).fetchone()
    if not (row and row[0]):
        return []
    return list(connection.execute(OWNERS.format(quoted(progress)).encode(), [wanted]).fetchall())


def _own_views(
    connection: Connection, schemas: Iterable[str], replicator: str
) -> set[tuple[str, str, str]]:
    """Schema, table and name of the views that this replicator made."""
    found = set()
    for schema in schemas:
        progress = quoted((schema, naming.PROGRESS))
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [progress]).fetchone()
        if replicator and row and row[0]:
            rows = connection.execute(VIEWS.format(progress).encode(), [VIEW_ROW, replicator])
            found |= {(schema, table.removeprefix(VIEW_ROW), view) for table, view in rows}
    return found


def _named(table: TableSchema, place: Names) -> Iterator[Problem]:
    """What is wrong with the names of a table and its columns."""
    if naming.is_own(place):
        yield Problem.of("target:name-reserved", table=table.id, target=".".join(place))
    if place[0].startswith("pg_") or place[0] == "information_schema":
        yield Problem.of("target:postgresql-schema-name", table=table.id, target=place[0])
    if place[1] != table.id.name or naming.cut(table.id.schema) != table.id.schema:
        yield Problem.of(
            "target:postgresql-shortened",
            severity=Severity.WARNING,
            table=table.id,
            target=".".join(place),
        )
    if len(table.supported) > MOST_COLUMNS:
        yield Problem.of(
            "target:postgresql-too-many-columns", table=table.id, count=len(table.supported)
        )
    faults = {
        "longer than 63 bytes": naming.long_columns(table),
        "each table has a column of its own with it": naming.system_columns(table),
    }
    for reason, names in faults.items():
        for name in names:
            yield Problem.of(
                "target:postgresql-column-name", table=table.id, column=name, reason=reason
            )
