"""Preflight of a Snowflake target: whether one can sign in, database and warehouse, and which names
are taken. Makes and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.taken import is_view_taken, row_of
from replicators.connectors.view_fields import view_problems
from replicators.targets.snowflake import naming
from replicators.targets.snowflake.client import LITERAL, SnowflakeClient
from replicators.targets.snowflake.params import LONGEST, SnowflakeParams

LONG_SECONDS = 600


class SnowflakeChecks(Closing):
    """See `connectors.target.TargetChecks`. It connects only when asked, so that creating it never
    fails."""

    def __init__(self, params: SnowflakeParams) -> None:
        self.params = params

    def connection(self) -> list[Problem]:
        """Problems of the account, the user, the database and the warehouse."""
        try:
            with closing(SnowflakeClient(self.params)) as client:
                return list(self._found(client))
        except ReplicationError as err:
            return [_problem(err)]

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

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Problems of the chosen tables: names, and tables that are taken."""
        places = {t.id: naming.names(self.params, t.id) for t in tables}
        found = [p for t in tables for p in _named(t, places[t.id])]
        found += shared_names(tables, places.__getitem__)
        try:
            with closing(SnowflakeClient(self.params)) as client:
                there = {
                    (*space, name)
                    for space in {p[:-1] for p in places.values()}
                    for name in client.tables(space, "")
                }
                for table, place in places.items():
                    row = row_of(client, place) if place in there else None
                    is_own = row is not None and replicator and row.replicator == replicator
                    if place in there and not is_own:
                        target = ".".join(place)
                        found.append(Problem.of("target:table-taken", table=table, target=target))
        except ReplicationError as err:
            found.append(_problem(err))
        return found

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """See `ViewChecks`."""
        tables = {t.id: naming.names(self.params, t.id) for t in chosen}
        wanted = {t.id: naming.view(self.params, tables[t.id]) for t in viewed}
        views = {table: place for table, place in wanted.items() if place is not None}
        taken: list[TableId] = []
        try:
            with closing(SnowflakeClient(self.params)) as client:
                for table, place in views.items():
                    if is_view_taken(client, tables[table], place, replicator):
                        taken.append(table)
        except ReplicationError as err:
            return [_problem(err)]
        return list(view_problems(views, tables, taken))

    def close(self) -> None:
        """Nothing is held."""


def _problem(err: ReplicationError) -> Problem:
    return Problem(err.code, facts=tuple((k, str(v)) for k, v in err.facts.items()))


def _named(table: TableSchema, place: tuple[str, ...]) -> Iterator[Problem]:
    """What is wrong with the names of a table and its columns."""
    if place[-1].startswith(naming.OWN) or place[1] == "INFORMATION_SCHEMA":
        yield Problem.of("target:name-reserved", table=table.id, target=".".join(place))
    names = [*place, *(c.name for c in table.supported)]
    for name in (n for n in names if len(n) > LONGEST):
        yield Problem.of("target:snowflake-name", table=table.id, name=name, most=LONGEST)
