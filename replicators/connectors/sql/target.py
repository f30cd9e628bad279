"""A `MergeTarget` by SQL, for every database with transactions: staging, merge and progress row in
one commit. A plugin gives it a client, its types and its names.

The order of writes, and what a crash leaves between two steps:
- A batch is loaded into a staging table. Then one transaction changes the table and its progress
  row (`state`). A crash before it leaves only a staging table, whose name belongs to the process
  that died. The next process removes it when it first merges into the table, or begins a copy.
- A snapshot's files are loaded into a staging table, which becomes the live table in one step
  (`SqlClient.publish`), together with the progress row. Where the database can't do both in one
  transaction, the progress row first says that the publication begins. A crash between the step and
  its record then leaves a table that is known as this replicator's own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from replicators.connectors import failpoints, files
from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH, Mode, stored
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.ownership import LiveTable, Written, own_token
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import merge, tables, trees
from replicators.connectors.sql.client import (
    DirectClient,
    KeepingClient,
    LiveColumns,
    Names,
    SessionClient,
    SqlClient,
)
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.evolve import Alteration, Note, Types, plan
from replicators.connectors.sql.places import SqlPlaces as SqlPlaces
from replicators.connectors.sql.places import are_portions, one_per_table, snapshot_place
from replicators.connectors.sql.staged import staged_batch, staged_snapshot
from replicators.connectors.sql.state import (
    COLUMNS,
    Progress,
    ProgressTable,
    found,
    moved,
    numbers_of,
)
from replicators.connectors.sql.steps import Statement, Step
from replicators.connectors.sql.views import Views
from replicators.connectors.target import (
    CurrentRows,
    FoldedBatch,
    MergeResult,
    SnapshotPlace,
    TargetTable,
    Token,
)
from replicators.connectors.view_fields import view_row


@dataclass(frozen=True, slots=True)
class _Found:
    """What the database has for a table: its names, its progress row, and the live table."""

    names: Names
    row: Progress | None
    live: LiveColumns | None

    @property
    def is_known(self) -> bool:
        """Whether the live table is the one that the progress row is about."""
        row, live = self.row, self.live
        return bool(row and live and row.generation and row.identity == live.identity)

    def may_replace(self, replicator: str) -> bool:
        """Whether a snapshot of this replicator may replace the live table. A row that says
        `publishing` was left by a crash: the table may be the one that was published then."""
        if self.live is None:
            return True
        row = self.row
        is_own = row is not None and row.replicator == replicator
        return bool(is_own and row and (self.is_known or row.publishing))

    @property
    def shown(self) -> LiveTable | None:
        """The table and its token, as ownership is decided by them."""
        if self.live is None:
            return None
        row = self.row
        if row is None or not self.is_known:
            return LiveTable("", "", None)
        return LiveTable(row.replicator, row.uuid, row.token)


class SqlMergeTarget:
    """A `MergeTarget` over a `SqlClient`. Thread safe for different tables; one thread at a time
    for each table."""

    def __init__(self, client: SqlClient, places: SqlPlaces, types: Types) -> None:
        self._client = client
        self._places = places
        self._types = types
        self._run = uuid.uuid4().hex[:8]
        self._jobs = itertools.count(1)
        self._written: dict[tuple[Names, int], Written] = {}
        self._known: set[Names] = set()
        self._tidied: set[Names] = set()
        self._merged: set[tuple[Names, int]] = set()
        self._begun: set[str] = set()
        self._made: set[Names] = set()
        self._views = Views(client, self._progress, places.view, places.hidden)
        self._lock = threading.Lock()

    @property
    def _dialect(self) -> SqlDialect:
        """Asked of the client when it is needed: a client may have to connect for it, and a run
        starts and captures without its target too."""
        return self._client.dialect

    def names(self, table: TableId) -> Names:
        """Namespace and name."""
        return self._places.names(table)

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    # What the database has

    @contextmanager
    def _of(self, table: TargetTable) -> Iterator[None]:
        """Errors of the client get the table, and the name of its target table."""
        try:
            yield
        except ReplicationError as err:
            if err.table is not None:
                raise
            facts = {"target": ".".join(self.names(table.source)), **err.facts}
            raise ReplicationError(err.code, table=table.source, **facts) from err

    def _progress(self, names: Names) -> ProgressTable:
        return ProgressTable(self._dialect, self._places.progress(names))

    def _found(self, table: TargetTable) -> _Found:
        names = self.names(table.source)
        progress = self._places.progress(names)
        row = None
        if progress in self._known or self._is_progress(table, progress):
            row = found(self._client.query(self._progress(names).find(names[-1])))
        return _Found(names, row, self._client.table(names))

    def _is_progress(self, table: TargetTable, progress: Names) -> bool:
        """Whether there is a progress table. `target:progress-columns` where a table with its name
        is something else."""
        shown = self._client.table(progress)
        if shown is None:
            return False
        if not {c.name for c in COLUMNS} <= {n.lower() for n in shown.columns}:
            named = ".".join(progress)
            raise ReplicationError("target:progress-columns", table=table.source, target=named)
        with self._lock:
            self._known.add(progress)
        return True

    def _make_progress(self, table: TargetTable, names: Names) -> None:
        progress = self._places.progress(names)
        if progress == names:
            raise ReplicationError(
                "target:name-reserved", table=table.source, target=".".join(names)
            )
        self._client.make_namespace(names[:-1])
        if progress not in self._known and not self._is_progress(table, progress):
            made = tables.create(self._dialect, trees.table(progress), COLUMNS, if_absent=True)
            self._client.change([Statement(made)], job=self._job("progress"))
            self._is_progress(table, progress)

    def token(self, table: TargetTable) -> Token | None:
        """The live table's token; None if there is no such table or no token. The caller plans from
        this token, so the next merge accepts what another run wrote until now."""
        with self._of(table):
            shown = self._found(table).shown
            token = shown.token if shown else None
            if token is not None and token.generation == table.generation:
                self._note(table, Written(token.sequence))
            return token

    def _own(self, table: TargetTable) -> tuple[_Found, Progress]:
        """The live table and its row, if this replicator may write to it."""
        there = self._found(table)
        own_token(there.shown, table, self._written.get(self._place(table)))
        assert there.row is not None
        return there, there.row

    def _place(self, table: TargetTable) -> tuple[Names, int]:
        return self.names(table.source), table.generation

    def _note(self, table: TargetTable, written: Written) -> None:
        with self._lock:
            self._written[self._place(table)] = written

    def _job(self, what: str) -> str:
        return f"replicator_{self._run}_{what}_{next(self._jobs)}"

    # Names of staging tables

    def _prefix(self, table: TargetTable) -> str:
        """The beginning of the names of all staging tables of one table and replicator."""
        shown = json.dumps([self.names(table.source), table.replicator])
        return f"_replicator_{hashlib.sha256(shown.encode()).hexdigest()[:12]}_"

    def _staging(self, table: TargetTable, what: str) -> Names:
        """A staging table of this process: two runs never share one."""
        return (*self.names(table.source)[:-1], f"{self._prefix(table)}{what}_{self._run}")

    def _kept(self, table: TargetTable, what: str) -> Names:
        """A staging table of a copy. Where tasks write into it, another process may go on with it:
        then its name is the same in each, and only the last one can write."""
        if not isinstance(self._client, DirectClient):
            return self._staging(table, what)
        return (*self.names(table.source)[:-1], f"{self._prefix(table)}{what}")

    def _copy(self, table: TargetTable) -> Names:
        return self._kept(table, f"copy_{table.generation}")

    def _unnumbered(self, table: TargetTable) -> Names:
        """The rows of a copy without a key, before they get their numbers."""
        return self._kept(table, f"rows_{table.generation}")

    def _loaded(self, table: TargetTable) -> Names:
        return self._copy(table) if table.mode is not Mode.MULTISET else self._unnumbered(table)

    def _clear(self, table: TargetTable, *, keeps_own: bool = False) -> None:
        """Remove staging tables that earlier tries left, of every generation."""
        namespace, prefix = self.names(table.source)[:-1], self._prefix(table)
        for name in self._client.tables(namespace, prefix):
            if not (keeps_own and (name.endswith(self._run) or name in self._begun)):
                self._client.drop((*namespace, name))
                with self._lock:
                    self._made.discard((*namespace, name))

    def _make(self, names: Names, schema: TableSchema) -> None:
        """Make the staging table of a copy."""
        self._client.make(names, schema, job=self._job("make"))
        with self._lock:
            self._made.add(names)

    # Snapshots

    def begin_snapshot(self, table: TargetTable, schema: TableSchema) -> None:
        """Make an empty staging table. `target:table-taken`, `target:view-taken`."""
        with self._of(table):
            there = self._refuse_taken(table)
            shown = stored(schema, table.mode)
            self._make_progress(table, there.names)
            self._views.change(table, there.names, schema, is_forced=True)
            self._clear(table)
            files.remove_folder(self._folder(table))
            self._make(self._loaded(table), shown)

    def _refuse_taken(self, table: TargetTable) -> _Found:
        there = self._found(table)
        if not there.may_replace(table.replicator):
            named = ".".join(there.names)
            raise ReplicationError("target:table-taken", table=table.source, target=named)
        row = there.row
        if there.is_known and row and row.generation > table.generation:
            raise ReplicationError("target:table-ahead", table=table.source)
        return there

    def _folder(self, table: TargetTable) -> str:
        """The folder for the files of the table's snapshots."""
        return f"{self._places.folder.rstrip('/')}/{self._prefix(table).strip('_')}"

    def snapshot_place(self, table: TargetTable, schema: TableSchema) -> SnapshotPlace:
        """A new folder for the files of one `load_snapshot_files`."""
        folder = f"{self._folder(table)}/{table.generation}/{uuid.uuid4().hex[:12]}"
        files.make_folder(folder)
        return self._place_in(table, schema, folder)

    def snapshot_place_again(
        self, table: TargetTable, schema: TableSchema, folder: str
    ) -> SnapshotPlace | None:
        """The place with this folder, made after the same generation's `begin_snapshot`; None where
        it is gone."""
        root = f"{self._folder(table)}/{table.generation}/"
        if not folder.startswith(root) or not files.has_folder(folder):
            return None
        if isinstance(self._client, DirectClient):
            with self._of(table):
                if self._client.table(self._loaded(table)) is None:
                    return None
        return self._place_in(table, schema, folder)

    def _place_in(self, table: TargetTable, schema: TableSchema, folder: str) -> SnapshotPlace:
        place = snapshot_place(table, schema, folder)
        if not isinstance(self._client, DirectClient):
            return place
        names = self._loaded(table)
        with self._of(table):
            direct = self._client.direct(names, stored(schema, table.mode).supported)
        with self._lock:
            self._begun |= {names[-1], self._copy(table)[-1]}
        return replace(place, direct=direct)

    def load_snapshot_files(
        self, table: TargetTable, schema: TableSchema, paths: Sequence[str]
    ) -> None:
        """Load the files into the staging table and remove them. Another process may have begun
        this snapshot: then the staging table is made here."""
        with self._of(table):
            shown, names = stored(schema, table.mode), self._loaded(table)
            if names not in self._made and self._client.table(names) is None:
                self._clear(table)
                self._make(names, shown)
            if isinstance(self._client, DirectClient) and are_portions(paths):
                numbers = [int(path.rsplit("/", 1)[1]) for path in paths]
                self._client.keep(names, numbers, job=self._job("keep"))
                paths = ()
            if not paths:
                return
            staged = staged_snapshot(shown, paths, self._client.arrow)
            self._client.load(names, staged, job=self._job("copy"), appends=True)
            for folder in {path.rsplit("/", 1)[0] for path in paths}:
                files.remove_folder(folder)

    def publish_snapshot(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """Make the staged rows the live table, with its progress row. Returns the table's UUID. A
        repeat changes nothing. `target:table-taken`, and `target:table-ahead` if another run
        published or merged meanwhile."""
        with self._of(table):
            there = self._refuse_taken(table)
            row, is_known = there.row, there.is_known
            if row and is_known and row.generation == table.generation:
                self._note(table, Written(row.sequence))
                self._tidy(table)
                self._views.keep(table, there.names, schema, self._job)
                return row.uuid
            view = self._views.change(table, there.names, schema, is_forced=True)
            self._number(table, schema)
            made = row.uuid if row and is_known else str(uuid.uuid4())
            progress = self._progress(there.names)
            if not self._client.publishes_at_once:
                row = self._announce(table, there, made)
                failpoints.hit("copy_announced")
            after = Progress(
                there.names[-1], table.replicator, table.generation, sequence, made,
                numbers=numbers_of(schema),
            )  # fmt: skip

            def record(identity: str) -> tuple[Step, ...]:
                failpoints.hit("copy_swapped")
                new = replace(after, identity=identity, commit=uuid.uuid4().hex)
                steps = progress.changed(row, new, "target:table-ahead")
                return (*steps, *self._publishing(there.names))

            copied = self._copy(table), there.names, stored(schema, table.mode), record
            self._views.publish(table, copied, view, self._job)
            self._note(table, Written(sequence))
            self._tidy(table)
            return made

    def _announce(self, table: TargetTable, there: _Found, made: str) -> Progress:
        """Record that a publication begins."""
        first = Progress(there.names[-1], table.replicator, 0, 0, made)
        is_own = there.row is not None and there.row.replicator == table.replicator
        new = replace(
            there.row if there.row and is_own else first,
            publishing=table.generation,
            commit=uuid.uuid4().hex,
        )
        steps = self._progress(there.names).changed(there.row, new, "target:table-ahead")
        self._client.run(steps, job=self._job("announce"))
        return new

    def _tidy(self, table: TargetTable) -> None:
        with self._lock:
            self._made.discard(self._loaded(table))
        self._clear(table)
        files.remove_folder(self._folder(table))

    def _number(self, table: TargetTable, schema: TableSchema) -> None:
        """Give the staged rows of a table without a key their numbers among equal rows."""
        if table.mode is not Mode.MULTISET:
            return
        shown, names = stored(schema, table.mode), self._copy(table)
        columns = [c.name for c in shown.supported]
        chosen: list[exp.Expression] = [
            _numbered() if name == OCCURRENCE else trees.column(name) for name in columns
        ]
        rows = trees.select(chosen, trees.table(self._unnumbered(table)))
        self._client.make(names, shown, job=self._job("make"))
        numbered = Statement(trees.insert(trees.table(names), columns, rows))
        self._client.run([numbered], job=self._job("number"))
        failpoints.hit("copy_numbered")

    # Tables that somebody else filled

    def take_over(self, table: TargetTable, schema: TableSchema, sequence: int) -> str:
        """See `TakesOver`. The live table stays as it is: only its progress row is made."""
        with self._of(table):
            there = self._found(table)
            row = there.row
            if (
                there.is_known
                and row
                and row.token
                == replace(row.token, replicator=table.replicator, generation=table.generation)
            ):
                self._note(table, Written(row.sequence))
                return row.uuid
            fault = self._not_taken(there, table.replicator, schema)
            if fault is not None:
                raise fault
            self._make_progress(table, there.names)
            assert there.live is not None
            made = Progress(
                there.names[-1], table.replicator, table.generation, sequence, str(uuid.uuid4()),
                identity=there.live.identity, numbers=numbers_of(schema), commit=uuid.uuid4().hex,
            )  # fmt: skip
            steps = self._progress(there.names).changed(row, made, "target:table-ahead")
            self._client.run(steps, job=self._job("take"))
            self._note(table, Written(sequence))
            return made.uuid

    def take_over_fault(self, schema: TableSchema, replicator: str) -> ReplicationError | None:
        """Why the table at the place of this one can't be taken over; None where it can, or where
        this replicator has it already. Makes and changes nothing."""
        table = TargetTable(schema.id, replicator, 0)
        with self._of(table):
            there = self._found(table)
            row = there.row
            if there.is_known and row and replicator and row.replicator == replicator:
                return None
            return self._not_taken(there, replicator, schema)

    def _not_taken(
        self, there: _Found, replicator: str, schema: TableSchema
    ) -> ReplicationError | None:
        facts = {"target": ".".join(there.names)}
        live = there.live
        if live is None:
            return ReplicationError("target:take-over-missing", table=schema.id, **facts)
        if there.is_known and there.row and there.row.replicator != replicator:
            return ReplicationError("target:table-taken", table=schema.id, **facts)
        wrong = [
            f"{c.name} {self._types.native(c)} ({live.columns.get(c.name, 'missing')})"
            for c in schema.supported
            if not self._holds(live.columns.get(c.name, ""), c)
        ]
        if not wrong:
            return None
        facts["columns"] = ", ".join(wrong)
        return ReplicationError("target:take-over-columns", table=schema.id, **facts)

    def _holds(self, live: str, column: Column) -> bool:
        """Whether a column of this type takes each value: its type is ours, the source's own, or
        wider than ours."""
        live, native = live.lower(), self._types.native(column).lower()
        return live in (native, column.native.lower()) or self._types.is_wider(native, live)

    # Merges

    def merge(self, table: TargetTable, batch: FoldedBatch) -> MergeResult:
        """Apply a batch and its sequence in one transaction, unless the token shows that this was
        done. `target:table-ahead` if another run wrote since the token was read;
        `target:conflict` if that may have been a process that died (`_late`)."""
        with self._of(table), self._late(table):
            is_own = isinstance(self._client, SessionClient) and merge.reads_once(batch)
            row, steps = self._prepared(table, batch, is_own=is_own)
            if steps:
                self._client.run(steps, job=self._job("merge"))
                failpoints.hit("batch_merged")
                self._done(table, batch, is_own=is_own)
            return MergeResult(bool(steps), row.uuid)

    def _prepared(
        self, table: TargetTable, batch: FoldedBatch, *, is_own: bool = False
    ) -> tuple[Progress, list[Step]]:
        """Load a batch into its staging table. Returns the live table's row, and the steps of the
        transaction; none where the token shows that they were done. `is_own`: this thread runs
        them."""
        there, row = self._own(table)
        if batch.is_known(row.sequence):
            return row, []
        self._clear_others(table, batch.schema)
        staged = self._stage(table, batch, is_own=is_own)
        failpoints.hit("batch_staged")
        done = moved(row, batch.sequence, uuid.uuid4().hex)
        self._note(table, Written(row.sequence, batch.sequence))
        return row, [
            *self._progress(there.names).changed(row, done, "target:table-ahead"),
            *self._merging(there.names, staged, batch),
        ]

    def _done(self, table: TargetTable, batch: FoldedBatch, *, is_own: bool = False) -> None:
        """The batch's transaction was committed."""
        self._note(table, Written(batch.sequence))
        with self._lock:
            self._merged.add(self._place(table))
        if merge.has_rows(batch):
            self._release(self._staging(table, "own" if is_own else "batch"))

    @contextmanager
    def _late(self, table: TargetTable) -> Iterator[None]:
        """A merge that finds the table ahead fails with `target:conflict`, as long as this process
        has merged nothing into it: a merge that a dead process had sent may have ended after the
        token was read. Then the table is compared again, and the token is adopted if it is one of
        ours. It can't end later than that: a merge of ours changes the progress row, so that the
        other one fails."""
        try:
            yield
        except ReplicationError as err:
            if err.code != "target:table-ahead" or self._place(table) in self._merged:
                raise
            shown = self._found(table).shown
            token = shown.token if shown else None
            if token is None or token.generation != table.generation:
                raise
            raise ReplicationError("target:conflict", table=table.source) from err

    def _release(self, staged: Names) -> None:
        """A batch's staging table is not needed any more."""
        if isinstance(self._client, KeepingClient):
            self._client.release(staged)
        else:
            self._client.drop(staged)

    def _merging(self, live: Names, staged: Names, batch: FoldedBatch) -> Sequence[Step]:
        """What a merge does beside its progress row."""
        return merge.steps(self._dialect, trees.table(live), trees.table(staged), batch)

    def _missing(self, live: Names, staged: Names, batch: FoldedBatch) -> exp.Query:
        """The query of `missing_rows`."""
        return merge.missing(self._dialect, trees.table(live), trees.table(staged), batch)

    def _publishing(self, live: Names) -> Sequence[Step]:
        """What the publication of a copy does beside its progress row."""
        return ()

    def _clear_others(self, table: TargetTable, schema: TableSchema) -> None:
        """Once for each table, remove what other processes left, and make what they left out."""
        names = self.names(table.source)
        if names not in self._tidied:
            self._clear(table, keeps_own=True)
            self._views.keep(table, names, schema, self._job)
            with self._lock:
                self._tidied.add(names)

    def _stage(self, table: TargetTable, batch: FoldedBatch, *, is_own: bool = False) -> Names:
        """Load the batch's files into a staging table. One that only this thread's session sees has
        a name of its own: it would hide a table with the same name."""
        names = self._staging(table, "own" if is_own else "batch")
        if merge.has_rows(batch):
            staged = staged_batch(batch, self._client.arrow)
            if is_own and isinstance(self._client, SessionClient):
                key = (
                    [] if batch.append_only else [batch.schema.column(n) for n in batch.schema.key]
                )
                self._client.load_own(names, staged, key, job=self._job("batch"))
            else:
                self._client.load(names, staged, job=self._job("batch"))
        return names

    def missing_rows(self, table: TargetTable, batch: FoldedBatch) -> pa.Table:
        """The keys of the batch's rows whose unsent values are in a row that the table does not
        have."""
        with self._of(table):
            staged = self._stage(table, batch)
            rows = self._client.query(self._missing(self.names(table.source), staged, batch))
            self._client.drop(staged)
            arrow = batch.schema.arrow_schema()
            wanted = pa.schema([arrow.field(n) for n in batch.schema.key])
            return rows.rename_columns(wanted.names).cast(wanted)

    @contextmanager
    def open_rows(self, table: TargetTable, schema: TableSchema) -> Iterator[CurrentRows]:
        """See `ReadsRows.open_rows`."""
        names = self.names(table.source)
        with self._of(table), self._client.current_rows(names, schema, table.mode) as rows:
            yield rows

    # Columns

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        """Make the live table fit `new`. Returns the changes as text. `target:evolve`."""
        with self._of(table):
            there, row = self._own(table)
            assert there.live is not None
            shown = stored(new, table.mode)
            drops = frozenset(c.name for c in stored(old, table.mode).columns)
            changes = plan(there.live.columns, row.numbers, shown, drops=drops, types=self._types)
            is_forced = any(not isinstance(c.alteration, Note) for c in changes)
            view = self._views.change(table, there.names, new, is_forced=is_forced)
            steps: list[Step] = []
            if changes:
                steps = self._altering(there.names, row, [c.alteration for c in changes])
            self._views.alter(table, there.names, steps, view, self._job)
            return [c.text for c in changes if c.text]

    def _altering(
        self, names: Names, row: Progress, alterations: Sequence[Alteration]
    ) -> list[Step]:
        """The alterations as steps, first one that fails if another run wrote meanwhile."""
        progress, target = self._progress(names), trees.table(names)
        steps: list[Step] = []

        def record(numbers: dict[str, int]) -> Progress:
            new = replace(row, numbers=numbers, commit=uuid.uuid4().hex)
            steps.extend(progress.changed(row, new, "target:table-ahead"))
            return new

        row = record(dict(row.numbers))
        for one in alterations:
            if isinstance(one, Note):
                row = record(dict(one.numbers))
            else:
                steps.append(Statement(tables.altered(self._dialect, target, one)))
        return steps

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        """Set a column of every row of the live table. The token stays the same."""
        with self._of(table):
            there, row = self._own(table)
            new = replace(row, commit=uuid.uuid4().hex)
            filled = tables.fill_column(self._dialect, trees.table(there.names), column, value)
            progress = self._progress(there.names)
            steps = [*progress.changed(row, new, "target:table-ahead"), Statement(filled)]
            self._client.run(steps, job=self._job("fill"))

    def drop(self, table: TargetTable) -> None:
        """Remove the table, its view, its progress row, its staging tables and files, if it
        belongs to this replicator."""
        with self._of(table):
            there = self._found(table)
            row = there.row
            self._clear(table)
            files.remove_folder(self._folder(table))
            if row is None or row.replicator != table.replicator:
                return
            steps: list[Step] = []
            if there.live is not None and there.may_replace(table.replicator):
                steps.append(Statement(tables.drop(trees.table(there.names))))
            steps.append(self._progress(there.names).forgotten(row))
            view = self._views.change(table, there.names, None, is_forced=True)
            self._views.drop(table, there.names, steps, view, self._job)
            self._drop_progress(there.names)

    def _drop_progress(self, names: Names) -> None:
        """Remove a progress table that was for this table alone."""
        progress = self._places.progress(names)
        with self._lock:
            self._known.discard(progress)
        if self._places.progress is one_per_table and self._client.table(progress) is not None:
            rows = (self._progress(names).find(n) for n in (names[-1], view_row(names[-1])))
            if not any(self._client.query(row).num_rows for row in rows):
                self._client.drop(progress)


def _numbered() -> exp.Expression:
    digest = trees.column(ROW_HASH)
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[digest],
        order=exp.Order(expressions=[exp.Ordered(this=digest.copy())]),
    )
    return trees.called(number, OCCURRENCE)
