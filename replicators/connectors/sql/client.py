"""What a SQL target's plugin gives `SqlMergeTarget` beside its dialect: a client of the database.

Names are name parts, not quoted (namespace, name). Every method is thread safe. Its errors are
`ReplicationError`s without a table: `SqlMergeTarget` adds the table. A driver's error whose text
has one of `steps.CODES` becomes the error of that code. `target:conflict` is for a transaction that
the database ended because another one wrote at the same time: it is tried again.

`job` names one piece of work of one process. If an answer is lost, the client may ask the database
for the work of this name instead of doing it again. Another process never uses the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.steps import Step
from replicators.connectors.target import CurrentRows, DirectCopy

if TYPE_CHECKING:
    from sqlglot import exp

    from replicators.connectors.sql.dialect import SqlDialect

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveColumns:
    """A table as the database's catalog shows it.

    `identity`: the database's own mark of the table (an OID, a creation time). It stays when
    columns are changed. A table that was made by hand under the same name has another. `columns`:
    the native type of each column, spelled like `SqlDialect.native` spells it, in any case.
    """

    identity: str
    columns: Mapping[str, str] = field(default_factory=dict)


class AskedColumns(Mapping[str, str]):
    """Columns that are asked for when they are first needed: who looks whether a table is its own
    needs none of them."""

    def __init__(self, ask: Callable[[], dict[str, str]]) -> None:
        self._ask = ask

    @cached_property
    def _found(self) -> dict[str, str]:
        return self._ask()

    def __getitem__(self, name: str) -> str:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@runtime_checkable
class DirectClient(Protocol):
    """A `SqlClient` whose copies are written by the run's tasks, without files between."""

    def direct(self, names: Names, columns: Sequence[Column]) -> DirectCopy:
        """What tasks write the table with, which `make` made. Whoever got it before, such as an
        earlier process, can't write any more. The records of portions go with the next `make`."""
        ...

    def keep(self, names: Names, numbers: Sequence[int], *, job: str) -> None:
        """Remove the rows of all other portions, and the records of all."""
        ...


@runtime_checkable
class KeepingClient(Protocol):
    """A `SqlClient` that may keep the staging table of a batch for the next one."""

    def release(self, names: Names) -> None:
        """The batch's staging table is not needed any more. It is removed, or kept until a `load`
        under the same name, `drop` or `close`."""
        ...


@runtime_checkable
class SessionClient(Protocol):
    """A `SqlClient` whose threads have a session each. Staging tables that only their session sees
    cost less."""

    def load_own(
        self, names: Names, staged: StagedFiles, key: Sequence[Column], *, job: str
    ) -> None:
        """As `load`, but only the same thread's next `run` and `drop` have to see the table, and
        each statement names it once. It may go with the session: then `run` fails. Its rows differ
        in `key`, unless that is empty."""
        ...


class SqlClient(Protocol):
    """A database that SQL targets write to.

    `publishes_at_once`: `publish` and its steps are one transaction. Where it is false,
    `SqlMergeTarget` first records that a publication begins, so that a repeat knows the new table
    as its own.
    """

    @property
    def dialect(self) -> SqlDialect: ...

    @property
    def publishes_at_once(self) -> bool: ...

    def arrow(self, column: Column) -> pa.DataType:
        """The Arrow type in which `load` wants the values of a column. A time of day, for example,
        may have to be text."""
        ...

    def make_namespace(self, namespace: Names) -> None:
        """Make the namespace if it does not exist."""
        ...

    def table(self, names: Names) -> LiveColumns | None:
        """The table; None where there is no such table. A view, or anything else with this name, is
        a table with an identity of its own."""
        ...

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """The names of the tables in a namespace that begin with `prefix`, exactly as spelled;
        none where there is no such namespace."""
        ...

    def query(self, tree: exp.Query) -> pa.Table:
        """The rows of a small query, read outside of any transaction of ours."""
        ...

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy, which later becomes the live table. A table with this
        name is replaced. `schema`: with the mode's columns, and the key by which merges find rows.
        How the table is laid out (clustered, partitioned) is the client's; indexes may wait until
        `publish`."""
        ...

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Make a staging table with `staged.columns`, and load the rows of all files. A table with
        this name is replaced. `appends`: the table exists already, and the rows are added to it.
        All files or none: a repeat of the same job adds nothing twice. No readers look at a staging
        table, and it need not survive a crash of the database."""
        ...

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        """Run all steps in this order in one transaction. If a `Check` finds a row, or a statement
        fails, nothing of it remains. A statement sees what the statements before it wrote.

        The first step locks the table's progress row by an UPDATE. A transaction that waited for
        this lock must see what the other one committed (`READ COMMITTED`), or fail with
        `target:conflict`."""
        ...

    def change(self, steps: Sequence[Step], *, job: str) -> None:
        """Run steps that change tables (DDL), in this order: in one transaction where the database
        can, one by one where it can't. After a crash, the caller plans again from what it finds."""
        ...

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        """Make the staged table the live table, in one step for readers, and run the steps of
        `record`, which gets the identity that the live table then has. A live table that exists is
        replaced with all of its rows and columns; its grants, comments and dependent views stay
        where the database can keep them. Indexes for `schema.key` are there when readers see the
        table. The staged table is gone afterwards, or left for `drop`.
        `publishes_at_once` says whether all of this is one transaction."""
        ...

    def current_rows(
        self, names: Names, schema: TableSchema, mode: Mode
    ) -> AbstractContextManager[CurrentRows]:
        """The table's current rows, as `ReadsRows.open_rows` promises them. `schema`: without the
        mode's columns. `target:table-missing`."""
        ...

    def drop(self, names: Names) -> None:
        """Remove a staging table; nothing where it does not exist."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
