"""What a `SqlClient` does alike in all databases that have a DB-API driver, where each statement
of DDL is a commit of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, Generic, TypeVar

import pyarrow as pa
from sqlglot import exp

from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.per_thread import PerThread
from replicators.connectors.sql.steps import Check, Statement, Step

C = TypeVar("C", bound=Any)
_DDL = (exp.Create, exp.Alter, exp.Drop)


class DbApiClient(ABC, Generic[C]):
    """See `connectors.sql.client.SqlClient`. `faults`: what the driver raises. `is_open`: whether a
    connection was not lost. `translated`: a fault as a `ReplicationError`. `begin`, `prepare`: what
    comes before a transaction, and before each statement of one."""

    publishes_at_once = False
    faults: tuple[type[BaseException], ...] = ()

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connections = PerThread(connect, self.is_open)

    @property
    @abstractmethod
    def dialect(self) -> SqlDialect:
        """How statements are written."""

    @abstractmethod
    def is_open(self, connection: C) -> bool:
        """Whether a connection can be used."""

    @abstractmethod
    def translated(self, err: BaseException) -> Exception:
        """An error of the driver as a `ReplicationError`."""

    @abstractmethod
    def begin(self, connection: C) -> None:
        """Begin a transaction."""

    def noted(self, connection: C, err: BaseException) -> None:
        """An error came from this connection, which may be lost now."""

    def prepare(self, connection: C, tree: exp.Expression | exp.Query) -> None:
        """Whatever a statement of a transaction needs before it."""

    def found(self, cursor: Any) -> int | None:
        """How many rows an UPDATE found, also those that it left as they were; None where that is
        not known for certain."""
        return None

    def query(self, tree: exp.Query) -> pa.Table:
        """The rows of a small query."""
        with self.asking() as connection, connection.cursor() as cursor:
            cursor.execute(self.dialect.sql(tree))
            rows, names = cursor.fetchall(), [d[0] for d in cursor.description or ()]
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        return pa.Table.from_arrays([pa.array(values) for values in columns], names)

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        """Run the steps as one transaction. A repeat of a merge whose answer was lost finds its
        sequence in the progress row."""
        with self.transaction() as connection:
            self._run(connection, steps)

    def change(self, steps: Sequence[Step], *, job: str) -> None:
        """Run steps that change tables, each by itself. Between them are transactions."""
        for is_of_table, some in groupby(steps, _is_of_table):
            if not is_of_table:
                self.run(tuple(some), job=job)
                continue
            with self.asking() as connection:
                self._run(connection, some)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @contextmanager
    def asking(self) -> Iterator[C]:
        """The thread's connection, outside of any transaction."""
        connection = self._connections.get()
        try:
            yield connection
        except self.faults as err:
            self.noted(connection, err)
            raise self.translated(err) from err

    @contextmanager
    def transaction(self, is_done: Callable[[], bool] | None = None) -> Iterator[C]:
        """A transaction, committed at the end of the block. Any error rolls it back. `is_done` says
        whether it was committed after all, where the answer to the COMMIT was lost."""
        connection, is_committing = self._connections.get(), False
        try:
            self.begin(connection)
            yield connection
            is_committing = True
            connection.commit()
        except BaseException as err:
            self.noted(connection, err)
            if self.is_open(connection):
                self._roll_back(connection)
            elif is_committing and is_done is not None and is_done():
                return
            if isinstance(err, self.faults):
                raise self.translated(err) from err
            raise

    def _roll_back(self, connection: C) -> None:
        """Roll back, or end the connection: the next BEGIN would commit what is left open."""
        try:
            connection.rollback()
        except self.faults:
            with suppress(*self.faults):
                connection.close()

    def _run(self, connection: C, steps: Iterable[Step]) -> None:
        changed, is_none = 0, False
        for step in steps:
            if isinstance(step, Check) and step.is_of_change and changed == 1:
                continue
            tree = step.query if isinstance(step, Check) else step.tree
            if isinstance(step, Statement) and step.after_none is not None and is_none:
                tree = step.after_none
            self.prepare(connection, tree)
            with connection.cursor() as cursor:
                cursor.execute(self.dialect.sql(tree))
                changed = 0 if isinstance(step, Check) else cursor.rowcount
                is_none = isinstance(tree, exp.Update) and self.found(cursor) == 0
                if isinstance(step, Check) and cursor.fetchone() is not None:
                    raise ReplicationError(step.code)


def _is_of_table(step: Step) -> bool:
    return not isinstance(step, Check) and isinstance(step.tree, _DDL)
