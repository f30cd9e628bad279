"""Preflight of a Snowflake target: whether one can sign in, database and warehouse, and which names
are taken. Makes and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.checks import SqlChecks, problem_of
from replicators.targets.snowflake import naming
from replicators.targets.snowflake.client import LITERAL, SnowflakeClient
from replicators.targets.snowflake.params import LONGEST, SnowflakeParams

LONG_SECONDS = 600


class SnowflakeChecks(SqlChecks):
    """See `connectors.target.TargetChecks`. It connects only when asked, so that creating it never
    fails."""

    params: SnowflakeParams

    def connection(self) -> list[Problem]:
        """Problems of the account, the user, the database and the warehouse."""
        try:
            with closing(self.client()) as client:
                return list(self._found(client))
        except ReplicationError as err:
            return [problem_of(err)]

    def _found(self, client: SnowflakeClient) -> Iterator[Problem]:
        database, warehouse = self.params.database, self.params.warehouse
        client.rows("SELECT 1")
        found = client.rows(f"SHOW DATABASES STARTS WITH {LITERAL(database)}")
        if all(r["name"] != database for r in found):
            yield Problem.of("target:snowflake-database", database=database)
        seen = client.rows(f"SHOW WAREHOUSES LIKE {LITERAL(warehouse)}")
        here = [r for r in seen if r["name"] == warehouse]
        if not here:
            yield Problem.of("target:snowflake-warehouse", warehouse=warehouse)
        elif not self.params.suspends:
            told = str(here[0]["auto_suspend"])
            seconds = int(told) if told.isdigit() else 0
            if not 0 < seconds <= LONG_SECONDS:
                yield Problem.of(
                    "target:snowflake-runs-on",
                    severity=Severity.WARNING,
                    warehouse=warehouse,
                    seconds=seconds or "no",
                )

    def client(self) -> SnowflakeClient:
        """A client."""
        return SnowflakeClient(self.params)

    def place(self, table: TableId) -> tuple[str, ...]:
        """Where the copy of a table lies."""
        return naming.names(self.params, table)

    def view(self, place: tuple[str, ...]) -> tuple[str, ...] | None:
        """The view of a copy."""
        return naming.view(self.params, place)

    def named(self, table: TableSchema, place: tuple[str, ...]) -> Iterator[Problem]:
        """What is wrong with the names of a table and its columns."""
        if place[-1].startswith(naming.OWN) or place[1] == "INFORMATION_SCHEMA":
            yield Problem.of("target:name-reserved", table=table.id, target=".".join(place))
        names = [*place, *(c.name for c in table.supported)]
        for name in (n for n in names if len(n) > LONGEST):
            yield Problem.of("target:snowflake-name", table=table.id, name=name, most=LONGEST)
