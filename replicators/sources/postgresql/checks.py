"""Preflight of a PostgreSQL source: whether it can be reached and followed, and its tables copied.
Changes nothing at the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from replicators.connectors.closing import Closing
from replicators.connectors.filters.problems import filter_problems
from replicators.connectors.model.schema import TableId, TableSchema, TableSelection
from replicators.connectors.problems.columns import column_problems
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.sources.postgresql import filters, slots, sql
from replicators.sources.postgresql.catalog import describe
from replicators.sources.postgresql.connections import ReplicationConnection, connect
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.types import OWN, PARTIAL

MINIMUM_VERSION = 140000
Connection = psycopg.Connection[Any]

SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
       current_setting('wal_level'), current_setting('max_slot_wal_keep_size'),
       (SELECT r.rolsuper OR r.rolreplication FROM pg_roles r WHERE r.rolname = current_user)
         OR EXISTS (SELECT FROM pg_roles r
                    WHERE r.rolname IN ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')
                      AND pg_has_role(current_user, r.oid, 'member')),
       current_setting('max_replication_slots')::int,
       (SELECT count(*) FROM pg_replication_slots),
       current_setting('max_wal_senders')::int,
       (SELECT count(*) FROM pg_stat_get_wal_senders()),
       has_database_privilege(current_database(), 'CREATE'),
       pg_is_in_recovery()
"""

RIGHTS = """
SELECT n.nspname, c.relname, has_schema_privilege(n.oid, 'USAGE'),
       has_table_privilege(c.oid, 'SELECT'),
       pg_has_role(current_user, c.relowner, 'USAGE') OR r.rolsuper, c.relpersistence = 'p',
       p.unread, coalesce(p.has_policies, false) OR row_security_active(c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_roles r ON r.rolname = current_user
LEFT JOIN LATERAL (
    SELECT min(format('%%I.%%I', m.nspname, l.relname)) FILTER (WHERE NOT has_table_privilege(l.oid, 'SELECT')) AS unread,
           bool_or(row_security_active(l.oid)) AS has_policies
    FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid AND l.oid <> c.oid
    JOIN pg_namespace m ON m.oid = l.relnamespace
) p ON c.relkind = 'p'
JOIN unnest(%s::text[], %s::text[]) AS w(schema_name, table_name)
  ON w.schema_name = n.nspname AND w.table_name = c.relname
WHERE c.relkind IN ('r', 'p')
"""  # noqa: E501


class PostgresqlChecks(Closing):
    """See `connectors.source.Checks`. It connects only when asked, so that creating it never
    fails."""

    def __init__(self, params: PostgresqlParams) -> None:
        self.params = params

    def connection(self) -> list[Problem]:
        """Problems of server and role. An unreachable server is a problem, not an exception."""
        try:
            with connect(self.params) as connection:
                problems = list(self._server(connection))
            if not any(p.severity is Severity.ERROR for p in problems):
                ReplicationConnection(self.params).close()
        except (psycopg.Error, ReplicationError) as err:
            return [self._problem(err)]
        return problems

    def _problem(self, err: Exception) -> Problem:
        found = translate(err, self.params)
        assert isinstance(found, ReplicationError)
        facts: dict[str, Any] = dict(found.facts)
        return Problem.of(found.code, **facts)

    def _server(self, connection: Connection) -> Iterator[Problem]:
        row = connection.execute(SERVER).fetchone()
        assert row is not None
        (
            number,
            version,
            wal_level,
            keep,
            may_replicate,
            slots,
            used,
            senders,
            sending,
            create,
            standby,
        ) = row
        if number < MINIMUM_VERSION:
            yield Problem.of("source:version", version=version.split()[0])
        if standby:
            yield Problem.of("source:standby")
        if wal_level != "logical":
            yield Problem.of("source:wal-level", value=wal_level)
        if not may_replicate:
            yield Problem.of("source:replication-right", user=self.params.user)
        if not create:
            yield Problem.of(
                "source:create-right", user=self.params.user, database=self.params.database
            )
        if used >= slots:
            yield Problem.of("source:slots-used-up", limit=slots)
        if sending >= senders:
            yield Problem.of("source:senders-used-up", limit=senders)
        if keep == "-1":
            yield Problem.of("source:log-retention", severity=Severity.WARNING)

    def tables(self, tables: Sequence[TableSelection]) -> list[Problem]:
        """Problems of the chosen tables, in their order. Raises `source:*` where the server can't
        be asked."""
        if not tables:
            return [Problem.of("source:no-tables")]
        try:
            with connect(self.params) as connection:
                schemas = describe(connection, tables)
                followed = [s.native_id for s in schemas.values()]
                refusing = slots.refusing(connection, list(schemas.values()), followed)
                wanted = [t.id for t in tables]
                rows = connection.execute(
                    RIGHTS, [[t.schema for t in wanted], [t.name for t in wanted]]
                ).fetchall()
        except psycopg.Error as err:
            raise translate(err, self.params) from err
        rights = {TableId(row[0], row[1]): row[2:] for row in rows}
        found = [p for t in tables for p in self._table(t, schemas.get(t.id), rights.get(t.id))]
        return found + [
            Problem.of("source:partition-identity", table=t.id, statement=refusing[t.id])
            for t in tables
            if t.id in refusing
        ]

    def _table(
        self, selection: TableSelection, schema: TableSchema | None, rights: tuple[Any, ...] | None
    ) -> Iterator[Problem]:
        if schema is None or rights is None:
            yield Problem.of("source:table-missing", table=selection.id)
            return
        yield from self._rights(selection.id, rights)
        if not schema.key:
            code = "source:kept-by-count" if schema.full_before else "source:no-key"
            quoted = sql.table(schema.id)
            yield Problem.of(code, severity=Severity.WARNING, table=schema.id, quoted=quoted)
        yield from column_problems(selection, schema, PARTIAL, OWN)
        yield from filter_problems(selection, schema, filters.refusal, filters.may_be_unsent)

    def _rights(self, table: TableId, rights: tuple[Any, ...]) -> Iterator[Problem]:
        usage, select, owns, is_logged, unread, has_policies = rights
        facts: dict[str, Any] = {"user": sql.name(self.params.user), "quoted": sql.table(table)}
        if not usage:
            yield Problem.of("source:usage-right", table=table, **facts)
        if not select:
            yield Problem.of("source:select-right", table=table, **facts)
        elif unread is not None:  # a copy reads each partition by its own name
            yield Problem.of("source:select-right", table=table, **{**facts, "quoted": unread})
        if has_policies:
            yield Problem.of("source:row-security", table=table, **facts)
        if not owns:
            yield Problem.of("source:publication-right", table=table, **facts)
        if not is_logged:
            yield Problem.of("source:table-unlogged", table=table, **facts)

    def close(self) -> None:
        """Nothing is held."""
