"""What the preflight of a SQL target asks alike: the names of tables and views, and whether they
are taken. For targets in which each table has a progress table of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem
from replicators.connectors.sql.client import Names, SqlClient
from replicators.connectors.sql.taken import is_view_taken, row_of
from replicators.connectors.view_fields import view_problems


class SqlChecks(Closing, ABC):
    """See `connectors.target.TargetChecks` and `ViewChecks`. `client` opens a client, `place` and
    `view` give the names of a table and of its view, and `named` says what is wrong with names."""

    @abstractmethod
    def client(self) -> SqlClient:
        """A client; it connects only when it is asked."""

    @abstractmethod
    def place(self, table: TableId) -> Names:
        """Where the copy of a table lies."""

    @abstractmethod
    def view(self, place: Names) -> Names | None:
        """The view of a copy; None where there is none."""

    @abstractmethod
    def named(self, table: TableSchema, place: Names) -> Iterator[Problem]:
        """What is wrong with the names of a table and its columns."""

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Problems of the chosen tables: names, and tables that are taken."""
        places = {t.id: self.place(t.id) for t in tables}
        found = [p for t in tables for p in self.named(t, places[t.id])]
        found += shared_names(tables, places.__getitem__)
        try:
            with closing(self.client()) as client:
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
            found.append(problem_of(err))
        return found

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """See `ViewChecks`."""
        tables = {t.id: self.place(t.id) for t in chosen}
        wanted = {t.id: self.view(tables[t.id]) for t in viewed}
        views = {table: place for table, place in wanted.items() if place is not None}
        taken: list[TableId] = []
        try:
            with closing(self.client()) as client:
                for table, place in views.items():
                    if is_view_taken(client, tables[table], place, replicator):
                        taken.append(table)
        except ReplicationError as err:
            return [problem_of(err)]
        return list(view_problems(views, tables, taken))

    def close(self) -> None:
        """Nothing is held."""


def problem_of(err: ReplicationError) -> Problem:
    """An error as a problem."""
    return Problem(err.code, facts=tuple((k, str(v)) for k, v in err.facts.items()))
