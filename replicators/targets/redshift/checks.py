"""Preflight of a Redshift target: whether one can sign in, whether bucket and role can be used,
rights, and which names are taken. Makes and changes nothing: a table that is tried is temporary,
and rolled back."""

# ruff: noqa: S608 - values are written by `LITERAL`

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem
from replicators.connectors.sql.checks import SqlChecks, problem_of
from replicators.connectors.storage import looked, tried
from replicators.targets.redshift import naming
from replicators.targets.redshift.client import LITERAL, RedshiftClient
from replicators.targets.redshift.connection import rows
from replicators.targets.redshift.errors import FAULTS, code_of
from replicators.targets.redshift.params import LONGEST, RedshiftParams

NO_SUCH_FILE = "target:redshift-file"
PROBE = "_replicator_probe"
MOST_COLUMNS = 1580
"""Redshift has 1,600 columns; our staging table has some more than the table."""


class RedshiftChecks(SqlChecks):
    """See `connectors.target.TargetChecks`. It connects only when asked, so that creating it never
    fails."""

    params: RedshiftParams

    def client(self) -> RedshiftClient:
        """A client."""
        return RedshiftClient(self.params)

    def place(self, table: TableId) -> tuple[str, ...]:
        """Where the copy of a table lies."""
        return naming.names(self.params, table)

    def view(self, place: tuple[str, ...]) -> tuple[str, ...] | None:
        """The view of a copy."""
        return naming.view(self.params, place)

    def connection(self) -> list[Problem]:
        """Problems of the login, the database, the rights, the bucket and the role."""
        found = [looked(self.params.store, self.params.folder)]
        try:
            with closing(self.client()) as client:
                found += self._of_database(client)
                if not any(found):
                    found += self._of_copy(client)
        except ReplicationError as err:
            found.append(problem_of(err))
        return [p for p in found if p is not None]

    def _of_database(self, client: RedshiftClient) -> Iterator[Problem]:
        if "redshift" not in str(client.rows("SELECT version()")[0][0]).lower():
            yield Problem.of("target:redshift-other", host=self.params.host)
            return
        schemas = [self.params.schema] if self.params.schema else []
        yield from self._rights(client, schemas, has_temporary=True)

    def _rights(
        self, client: RedshiftClient, schemas: Sequence[str], *, has_temporary: bool = False
    ) -> Iterator[Problem]:
        """The rights on each schema; on the database where a schema is still to be made."""
        user, database = self.params.user, self.params.database

        def may(right: str) -> bool:
            text = f"SELECT has_database_privilege(current_user, current_database(), '{right}')"
            return bool(client.rows(text)[0][0])

        if has_temporary and not may("temp"):
            yield Problem.of(
                "target:redshift-create", user=user, target=database, right="TEMPORARY"
            )
        for schema in schemas:
            name = LITERAL(schema)
            there = client.rows(f"SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = {name}")
            if not there:
                if not may("create"):
                    yield Problem.of(
                        "target:redshift-create", user=user, target=database, right="CREATE"
                    )
                continue
            for right in ("usage", "create"):
                text = f"SELECT has_schema_privilege(current_user, {name}, '{right}')"
                if not client.rows(text)[0][0]:
                    yield Problem.of(
                        "target:redshift-create", user=user, target=schema, right=right.upper()
                    )

    def _of_copy(self, client: RedshiftClient) -> Iterator[Problem]:
        """What a COPY of a file says that is not there: role, keys and rights are looked at first.
        The temporary table goes with the transaction."""
        missing = f"{self.params.folder}/{PROBE}_{uuid.uuid4().hex}"
        try:
            with client.transaction() as connection:
                rows(connection, f'CREATE TEMPORARY TABLE "{PROBE}" (a INTEGER)')
                try:
                    client.copy(connection, (PROBE,), missing)
                except FAULTS as err:
                    if code_of(err) != NO_SUCH_FILE:
                        raise
                    raise ReplicationError(NO_SUCH_FILE) from None
                raise ReplicationError(NO_SUCH_FILE)
        except ReplicationError as err:
            if err.code != NO_SUCH_FILE:
                yield problem_of(err)

    def rights(self, client: RedshiftClient, spaces: Sequence[tuple[str, ...]]) -> list[Problem]:
        """The rights on the schemas."""
        return list(self._rights(client, [schema for (schema,) in spaces]))

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Problems of names and rights, and whether files can be written and removed."""
        found = super().tables(tables, replicator)
        if tables:
            refused = tried(self.params.store, self.params.folder)
            found += [refused] if refused else []
        return list(dict.fromkeys(found))

    def named(self, table: TableSchema, place: tuple[str, ...]) -> Iterator[Problem]:
        """What is wrong with the names of a table and its columns."""
        is_own = place[-1].startswith(naming.OWN)
        if is_own or place[0].startswith("pg_") or place[0] == "information_schema":
            yield Problem.of("target:name-reserved", table=table.id, target=".".join(place))
        names = [*place, *(c.name for c in table.supported)]
        for name in (n for n in names if len(n.encode()) > LONGEST):
            yield Problem.of("target:redshift-name", table=table.id, name=name, most=LONGEST)
        if len(table.supported) > MOST_COLUMNS:
            yield Problem.of(
                "target:redshift-columns",
                table=table.id,
                count=len(table.supported),
                most=MOST_COLUMNS,
            )
