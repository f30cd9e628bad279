"""Views of the living rows beside copies in the modes soft delete and history. They show the
source's columns only.

A row of the progress table says which view is ours (`VIEW_ROW`). It has the view's name in
`table_uuid`, and the view's identity. A view or a table that it does not name is never touched.

Where the client can, a view changes in the transaction that changes its table (`AtomicViews`).
Elsewhere it is made after that: the row first says that a view is being made (`publishing`), so
that a repeat after a crash knows the view as ours. The next merge makes what a crash left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from sqlglot import exp

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import trees
from replicators.connectors.sql.client import LiveColumns, Names, SqlClient
from replicators.connectors.sql.state import Progress, ProgressTable, found
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.target import TargetTable
from replicators.connectors.view_fields import VIEWED, view_row

Job = Callable[[str], str]
"""Names a piece of work."""
Copied = tuple[Names, Names, TableSchema, Callable[[str], Sequence[Step]]]
"""What `SqlClient.publish` is given."""
AHEAD = "target:table-ahead"


@dataclass(frozen=True, slots=True)
class ViewChange:
    """What happens to the view of a table. `old`: the view of ours that is there. `new`, `query`:
    the view that is wanted; None: none. `record` gives the steps that record its identity (empty:
    there is none)."""

    old: Names | None
    new: Names | None
    query: exp.Query | None
    record: Callable[[str], Sequence[Step]]

    def dropped(self) -> Statement | None:
        """The statement that removes the old view."""
        if self.old is None:
            return None
        return Statement(exp.Drop(tables=[trees.table(self.old)], kind="VIEW", exists=True))

    def made(self, *, replaces: bool) -> Statement | None:
        """The statement that makes the wanted view. It fails where something has its name, unless
        it `replaces` the old one."""
        if self.new is None or self.query is None:
            return None
        named = trees.table(self.new)
        made = exp.Create(kind="VIEW", this=named, expression=self.query.copy(), replace=replaces)
        return Statement(made)


@runtime_checkable
class AtomicViews(Protocol):
    """A `SqlClient` that changes a table and its view in one transaction."""

    def change_viewed(self, steps: Sequence[Step], view: ViewChange, *, job: str) -> None:
        """`SqlClient.change`, and the view is changed too."""
        ...

    def publish_viewed(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        view: ViewChange,
        *,
        job: str,
    ) -> None:
        """`SqlClient.publish`, and the view is changed too."""
        ...


def shown(schema: TableSchema, hidden: frozenset[str]) -> list[str]:
    """The columns that a view shows. `schema`: without the mode's columns."""
    return [c.name for c in schema.supported if c.name not in hidden]


def query_of(names: Names, columns: Sequence[str], mode: Mode) -> exp.Query:
    """The query of a view: the living rows of a table."""
    is_deleted = exp.Is(this=trees.column("_is_deleted"), expression=exp.true())
    where = trees.column("_is_current") if mode is Mode.HISTORY else trees.no(is_deleted)
    return trees.select([trees.column(c) for c in columns], trees.table(names), where=where)


class Views:
    """Plans and makes the views of one target. `place`: the view of a table; None: none is wanted.
    `hidden`: columns of the copies that are neither the source's nor the mode's."""

    def __init__(
        self,
        client: SqlClient,
        progress: Callable[[Names], ProgressTable],
        place: Callable[[Names], Names | None],
        hidden: frozenset[str],
    ) -> None:
        self._client = client
        self._progress = progress
        self._place = place
        self._hidden = hidden

    @property
    def are_atomic(self) -> bool:
        """Whether a view changes together with its table."""
        return self._client.publishes_at_once and isinstance(self._client, AtomicViews)

    def change(
        self, table: TargetTable, names: Names, schema: TableSchema | None, *, is_forced: bool
    ) -> ViewChange | None:
        """What has to happen to the view of a table; None: nothing. `schema`: without the mode's
        columns; None: the table goes. `is_forced`: also where the view has the right columns.
        `target:view-taken`."""
        progress = self._progress(names)
        row = found(self._client.query(progress.find(view_row(names[-1]))))
        wanted = self._place(names) if schema is not None and table.mode in VIEWED else None
        is_own = row is not None and row.replicator == table.replicator
        if wanted is None and not is_own:
            return None
        old, live = self._old(names, row if is_own else None)
        if wanted is not None and wanted != old and self._client.table(wanted) is not None:
            raise ReplicationError("target:view-taken", table=table.source, view=".".join(wanted))
        columns = shown(schema, self._hidden) if schema is not None else []
        is_right = (
            wanted == old
            and row is not None
            and live is not None
            and row.generation == table.generation
            and not row.publishing
            and list(live.columns) == columns
        )
        if is_right and not is_forced:
            return None
        query = query_of(names, columns, table.mode) if wanted is not None else None
        return ViewChange(old, wanted, query, self._recorder(table, names, row, wanted))

    def _old(self, names: Names, row: Progress | None) -> tuple[Names | None, LiveColumns | None]:
        """The view of ours that is there. A row that says `publishing` was left by a crash: the
        view may be the one that was made then."""
        if row is None:
            return None, None
        place = (*names[:-1], row.uuid)
        live = self._client.table(place)
        if live is None or not (row.publishing or row.identity == live.identity):
            return None, None
        return place, live

    def _recorder(
        self, table: TargetTable, names: Names, row: Progress | None, wanted: Names | None
    ) -> Callable[[str], Sequence[Step]]:
        progress = self._progress(names)

        def record(identity: str) -> Sequence[Step]:
            if wanted is None:
                return [] if row is None else [progress.forgotten(row)]
            return progress.changed(row, self._row(table, names, wanted, identity), AHEAD)

        return record

    def _row(self, table: TargetTable, names: Names, wanted: Names, identity: str) -> Progress:
        return Progress(
            view_row(names[-1]), table.replicator, table.generation, 0, wanted[-1],
            identity=identity, commit=uuid.uuid4().hex,
        )  # fmt: skip

    def keep(self, table: TargetTable, names: Names, schema: TableSchema, job: Job) -> None:
        """Make the view as it should be, where it is not."""
        if table.mode in VIEWED:
            change = self.change(table, names, schema, is_forced=False)
            if change is not None:
                self.apply(table, names, change, job)

    def publish(
        self, table: TargetTable, copied: Copied, change: ViewChange | None, job: Job
    ) -> None:
        """Publish a copy, and change the table's view."""
        client = self._client
        if change is not None and self.are_atomic and isinstance(client, AtomicViews):
            client.publish_viewed(*copied, change, job=job("publish"))
            return
        client.publish(*copied, job=job("publish"))
        if change is not None:
            self.apply(table, copied[1], change, job)

    def alter(
        self,
        table: TargetTable,
        names: Names,
        steps: Sequence[Step],
        change: ViewChange | None,
        job: Job,
    ) -> None:
        """Change a table, and its view."""
        client = self._client
        if change is not None and self.are_atomic and isinstance(client, AtomicViews):
            client.change_viewed(steps, change, job=job("change"))
            return
        if steps:
            client.change(steps, job=job("change"))
        if change is not None:
            self.apply(table, names, change, job)

    def drop(
        self,
        table: TargetTable,
        names: Names,
        steps: Sequence[Step],
        change: ViewChange | None,
        job: Job,
    ) -> None:
        """Remove a table, and its view. Where that is not one transaction, the view goes first: a
        repeat finds it only while the table's row is there."""
        if change is not None and not self.are_atomic:
            self.apply(table, names, change, job)
            change = None
        self.alter(table, names, steps, change, job)

    def apply(self, table: TargetTable, names: Names, change: ViewChange, job: Job) -> None:
        """Change a view by itself."""
        if self.are_atomic and isinstance(self._client, AtomicViews):
            self._client.change_viewed((), change, job=job("view"))
            return
        dropped = change.dropped()
        if dropped is not None and change.old != change.new:
            self._client.change([dropped], job=job("view_drop"))
        if change.new is None:
            self._client.run(change.record(""), job=job("view_record"))
            return
        announced = self._announced(table, names, change.new, job)
        made = change.made(replaces=change.old == change.new)
        assert made is not None
        self._client.change([made], job=job("view"))
        live = self._client.table(change.new)
        if live is None:
            raise ReplicationError("target:conflict", table=table.source)
        recorded = self._recorder(table, names, announced, change.new)(live.identity)
        self._client.run(recorded, job=job("view_record"))

    def _announced(self, table: TargetTable, names: Names, wanted: Names, job: Job) -> Progress:
        progress = self._progress(names)
        row = found(self._client.query(progress.find(view_row(names[-1]))))
        new = replace(self._row(table, names, wanted, ""), publishing=1)
        self._client.run(progress.changed(row, new, AHEAD), job=job("view_announce"))
        return new
