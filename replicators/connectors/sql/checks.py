"""What the preflight of a SQL target asks alike: the names of tables and views, and whether they
are taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

from replicators.connectors.closing import Closing
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.names import shared_names
from replicators.connectors.problems.problem import Problem
from replicators.connectors.sql.client import Names, SqlClient
from replicators.connectors.sql.places import one_per_table
from replicators.connectors.sql.taken import Owners
from replicators.connectors.view_fields import view_problems

K = TypeVar("K", bound=Hashable)


class SqlChecks(Closing, ABC):
    """See `connectors.target.TargetChecks` and `ViewChecks`. `client` opens a client, `place` and
    `view` give the names of a table and of its view, and `named` says what is wrong with names.
    `progress`: the progress table of a target table, as in `SqlPlaces`."""

    progress: Callable[[Names], Names] = staticmethod(one_per_table)

    def __init__(self, params: Any) -> None:
        self.params = params

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

    def folds(self, client: Any) -> bool:
        """Whether case counts in no name of a table."""
        return False

    def rights(self, client: Any, spaces: Sequence[Names]) -> Iterable[Problem]:
        """The rights that the user lacks in namespaces."""
        return ()

    def tables(self, tables: Sequence[TableSchema], replicator: str) -> list[Problem]:
        """Problems of the chosen tables: names, rights, and tables that are taken."""
        places = {t.id: self.place(t.id) for t in tables}
        spaces = sorted({place[:-1] for place in places.values()})
        shared = list(shared_names(tables, places.__getitem__))
        more: list[Problem] = []
        try:
            with closing(self.client()) as client:
                seen = self._folded(client, places)
                shared = list(shared_names(tables, seen.__getitem__))
                more += self.rights(client, spaces)
                own = Owners(client, self.progress)
                there = {(*space, n) for space in spaces for n in client.tables(space, "")}
                there = set(self._folded(client, {n: n for n in there}).values())
                for table, place in places.items():
                    row = own.row(place) if seen[table] in there else None
                    is_own = row is not None and replicator and row.replicator == replicator
                    if seen[table] in there and not is_own:
                        target = ".".join(place)
                        more.append(Problem.of("target:table-taken", table=table, target=target))
        except ReplicationError as err:
            more.append(problem_of(err))
        return [*(p for t in tables for p in self.named(t, places[t.id])), *shared, *more]

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """See `ViewChecks`."""
        tables = {t.id: self.place(t.id) for t in chosen}
        wanted = {t.id: self.view(tables[t.id]) for t in viewed}
        views = {table: place for table, place in wanted.items() if place is not None}
        if not views:
            return []
        try:
            with closing(self.client()) as client:
                own = Owners(client, self.progress)
                taken = [t for t, p in views.items() if not own.has_view(tables[t], p, replicator)]
                views, tables = self._folded(client, views), self._folded(client, tables)
        except ReplicationError as err:
            return [problem_of(err)]
        return list(view_problems(views, tables, taken))

    def _folded(self, client: Any, places: Mapping[K, Names]) -> dict[K, Names]:
        """The places as the database tells them apart."""
        if not self.folds(client):
            return dict(places)
        return {key: tuple(n.casefold() for n in place) for key, place in places.items()}

    def close(self) -> None:
        """Nothing is held."""


def problem_of(err: ReplicationError) -> Problem:
    """An error as a problem."""
    return Problem(err.code, facts=tuple((k, str(v)) for k, v in err.facts.items()))
