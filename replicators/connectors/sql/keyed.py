"""What a SQL target needs whose service takes rows by key and runs no MERGE (`SqlClient`). The
statements of a merge run on an image of the rows in question (`image`); what they changed is
written by key.

A merge and its progress row are one commit of the service where they fit into one. A larger merge
is first written down in a journal: its rows, and then, in one commit, the mark that it is complete.
From there on it is only finished, never begun again. Each of its commits writes final values, and
only while the progress row is the one that was marked. So a process that dies leaves a merge which
the next one finishes, before anybody reads the progress row, and no older row ever replaces a newer
one. Readers see the parts of a larger merge as they are committed, some of them at a time.
"""

# ruff: noqa: S608 - names go in through `_quoted`

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from sqlglot import exp

from replicators.connectors import failpoints
from replicators.connectors.model.modes import LOGS, ROW_HASH, Mode, stored
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Bytes, Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import engines, merge, trees
from replicators.connectors.sql.client import LiveColumns, Names
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.image import ROW_ID, Changed, Image, Imaged
from replicators.connectors.sql.relation import relation
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.state import COLUMNS, PROGRESS
from replicators.connectors.sql.steps import Check, Statement, Step
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch

JOURNAL = ("_replicator_journal",)
JOURNALED = (
    Column("target_table", String(), "", nullable=False),
    Column("commit_id", String(), "", nullable=False),
    Column("part", Int(64), "", nullable=False),
    Column("body", Bytes(), ""),
)
JOURNAL_KEY = ("target_table", "commit_id", "part")
PROGRESS_KEY = ("target_table",)
MISSING, LACKING, CONFLICT = "target:table-missing", "target:column-missing", "target:conflict"
"""Codes of errors that get their table from the target."""
COMMITS_AT_ONCE = 3
"""So many commits are under way at a time: one is encoded while the service works on another."""
CELL_BYTES = 4 << 20
"""The bytes of a journal's cell."""
_DDL = (exp.Create, exp.Alter, exp.Drop)


@dataclass(frozen=True, slots=True)
class Layout(LiveColumns):
    """A table as the service has it. `key`: its key's columns, in order. `is_timed`: it has a
    column in which the service writes the time of a commit."""

    key: tuple[str, ...] = ()
    is_timed: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """A commit is made only while the progress row of this table has this `commit_id` (empty:
    while there is no such row)."""

    progress: Names
    table: str
    commit: str


@dataclass(frozen=True, slots=True)
class Merging:
    """The batch that is merged into a table, and its staged relation."""

    staged: Names
    batch: FoldedBatch


class KeyedTarget(SqlMergeTarget):
    """A `SqlMergeTarget` over a `KeyedClient`, which has to know the batch of a merge."""

    def _merging(self, live: Names, staged: Names, batch: FoldedBatch) -> Sequence[Step]:
        self._about(live, staged, batch)
        return SqlMergeTarget._merging(self, live, staged, batch)

    def _missing(self, live: Names, staged: Names, batch: FoldedBatch) -> exp.Query:
        self._about(live, staged, batch)
        return SqlMergeTarget._missing(self, live, staged, batch)

    def _about(self, live: Names, staged: Names, batch: FoldedBatch) -> None:
        assert isinstance(self._client, KeyedClient)
        if merge.has_rows(batch) or (batch.truncate and batch.mode not in LOGS):
            self._client.merging[live] = Merging(staged, batch)


class KeyedClient(ABC):
    """See `connectors.sql.client.SqlClient`. `most_cells` and `most_bytes`: what one commit may
    have; `most_cells_of_copy`: into a table that nobody else has made an index of. `known`: the
    tables as the catalog showed them last. A merge asks the catalog once, when it looks whether the
    table is its own."""

    publishes_at_once = False
    most_cells = 20_000
    most_cells_of_copy = most_cells
    most_bytes = 8 << 20

    def __init__(self) -> None:
        self.merging: dict[Names, Merging] = {}
        self.known: dict[Names, Layout] = {}
        self._loaded: dict[Names, StagedFiles] = {}
        self._swept: set[str] = set()

    @property
    def dialect(self) -> SqlDialect:
        """The image's. Its rows are those in question, so no ranges of keys are written."""
        made = engines.duckdb(self.image_type)
        return replace(made, fail=None, orders=lambda _: False)

    # What a plugin gives

    @abstractmethod
    def image_type(self, column: Column) -> str:
        """The DuckDB type that holds what the service's type for the column holds."""

    @abstractmethod
    def arrow(self, column: Column) -> pa.DataType:
        """The Arrow type of the same."""

    @abstractmethod
    def column(self, name: str, native: str) -> Column:
        """A column of the service's type, as the methods above take it."""

    @abstractmethod
    def table(self, names: Names) -> Layout | None:
        """See `SqlClient.table`."""

    @abstractmethod
    def read(self, names: Names, columns: Sequence[Column], keys: pa.Table | None) -> pa.Table:
        """The rows with these keys, or whose keys begin with these values; None: all rows."""

    @abstractmethod
    def write(self, changes: Sequence[Changed], guard: Guard | None) -> None:
        """One commit. `target:conflict` where the guard does not hold."""

    @abstractmethod
    def fill(self, names: Names, column: Column, value: Any) -> None:
        """Set a column of every row, also in several commits."""

    @abstractmethod
    def define(self, names: Names, columns: Sequence[Column], key: Sequence[str]) -> None:
        """Make a table of the program's own, unless it exists."""

    @abstractmethod
    def alter(self, names: Names, action: exp.Expression) -> None:
        """Change a table by one action of ALTER TABLE."""

    @abstractmethod
    def remove(self, names: Names) -> None:
        """Remove a table; nothing where it does not exist."""

    @abstractmethod
    def append(self, names: Names, staged: StagedFiles) -> None:
        """Add the rows of files to a table of a copy; a repeat adds nothing twice."""

    # What all of them do

    def make_namespace(self, namespace: Names) -> None:  # noqa: B027 - nothing to make
        """Every table lies in one namespace."""

    def load(self, names: Names, staged: StagedFiles, *, job: str, appends: bool = False) -> None:
        """Rows of a copy go to the service; a batch's files are read when its merge runs."""
        if appends:
            self.append(names, staged)
        else:
            self._loaded[names] = staged

    def release(self, names: Names) -> None:
        """See `KeepingClient`."""
        self._loaded.pop(names, None)

    def drop(self, names: Names) -> None:
        """Remove a table, or forget a batch's rows; nothing where there is neither."""
        if self._loaded.pop(names, None) is None:
            self.remove(names)

    def query(self, tree: exp.Query) -> pa.Table:
        """The rows of a small query: of progress rows by their table, or `missing_rows`. A merge
        that is written down is finished first."""
        places = [_names(t) for t in tree.find_all(exp.Table)]
        if all(is_progress(n) for n in places):
            return self._progress_rows(places[0], [tree], settles=True)
        with Image(self.dialect, self.arrow) as image:
            self._fill_image(image, [tree])
            return image.query(tree)

    def change(self, steps: Sequence[Step], *, job: str) -> None:
        """Steps that change tables, one by one. Between them are transactions."""
        for is_of_table, some in groupby(steps, _is_of_table):
            if not is_of_table:
                self.run(tuple(some), job=job)
                continue
            for step in some:
                assert isinstance(step, Statement)
                self._change(step.tree)

    def _change(self, tree: exp.Expression) -> None:
        names = _names(next(tree.find_all(exp.Table)))
        if isinstance(tree, exp.Create):
            self.define(JOURNAL, JOURNALED, JOURNAL_KEY)
            self.define(names, COLUMNS, PROGRESS_KEY)
        elif isinstance(tree, exp.Alter):
            self.alter(names, tree.args["actions"][0])
        else:
            self.remove(names)

    def put(self, names: Names, found: Iterable[pa.Table]) -> None:
        """Put rows into a table of a copy, in commits of its size."""
        gone = pa.table({})
        changes = (Changed(names, rows, gone) for rows in found)
        for _ in self._beside(self._pieces(changes, self.most_cells_of_copy), None):
            pass

    def run(self, steps: Sequence[Step], *, job: str) -> None:
        """Run the steps on an image, and write what they changed. `target:conflict` if another run
        wrote meanwhile."""
        fills = [s for s in steps if self._is_fill(s)]
        rest = [s for s in steps if s not in fills]
        with Image(self.dialect, self.arrow) as image:
            emptied = self._fill_image(image, [_tree(s) for s in rest])
            progress = next((n for n in image.tables if is_progress(n)), None)
            before = image.all_of(progress) if progress else None
            image.run(rest)
            targets = {_target(s) for s in rest} - {progress, None}
            changes = [
                image.changed(n, is_emptied=n in emptied) for n in image.tables if n in targets
            ]
            moved = image.changed(progress) if progress else None
            values = [image.query(exp.select(_assigned(s).expression)) for s in fills]
        if moved is None or before is None:
            for piece in self._pieces(changes):
                self.write([piece], None)
        else:
            self._commit(changes, moved, before)
        for step, value in zip(fills, values, strict=True):
            self._filled(step, value)

    # The image

    def _is_fill(self, step: Step) -> bool:
        """Whether it sets a column of every row, and is no part of a merge."""
        if not isinstance(step, Statement) or not isinstance(step.tree, exp.Update):
            return False
        names = _target(step)
        return names is not None and not is_progress(names) and names not in self.merging

    def _filled(self, step: Step, value: pa.Table) -> None:
        names = _target(step)
        there = self.table(names) if names is not None else None
        if names is None or there is None:
            raise ReplicationError(MISSING)
        name = _assigned(step).this.name
        self.fill(names, self.column(name, there.columns[name]), value.column(0)[0].as_py())

    def _fill_image(self, image: Image, found: Sequence[exp.Expression | exp.Query]) -> set[Names]:
        """Bring the tables into the image of which the statements speak. Returns those that a batch
        empties."""
        places = list(dict.fromkeys(_names(t) for tree in found for t in tree.find_all(exp.Table)))
        emptied = set()
        for names in places:
            if names in self._loaded:
                staged = self._loaded[names]
                image.put(names, staged.columns, staged.read())
        for names in places:
            if names in self._loaded:
                continue
            if is_progress(names):
                rows = self._progress_rows(names, found, settles=False)
                image.put_live(Imaged(names, COLUMNS, PROGRESS_KEY), rows)
                continue
            about = self.merging.pop(names, None)
            if self._put_live(image, names, about):
                emptied.add(names)
        return emptied

    def _progress_rows(
        self, names: Names, found: Sequence[exp.Expression | exp.Query], *, settles: bool
    ) -> pa.Table:
        """The rows of the progress table of which the statements speak."""
        wanted = sorted({t for tree in found for t in _asked(tree)})
        keys = pa.table({"target_table": pa.array(wanted, pa.string())})
        rows = self.read(names, COLUMNS, keys)
        if settles and any(self._settled(names, row) for row in rows.to_pylist()):
            rows = self.read(names, COLUMNS, keys)
        return rows

    def _put_live(self, image: Image, names: Names, about: Merging | None) -> bool:
        """Returns whether the batch empties the table first."""
        there = self.known.get(names) if about else None
        there = there or self.table(names)
        if there is None:
            raise ReplicationError(MISSING)
        if about is None:
            columns = tuple(self.column(n, kind) for n, kind in there.columns.items())
            shown = Imaged(names, columns, there.key, is_large=True)
            image.put_live(shown, self.read(names, columns, None))
            return False
        batch = about.batch
        wanted = [c.name for c in stored(batch.schema, batch.mode).supported]
        wanted += [ROW_ID] if ROW_ID in there.key else []
        lacking = next((n for n in wanted if n not in there.columns), None)
        if lacking is not None:
            raise ReplicationError(LACKING)
        columns = tuple(self.column(n, there.columns[n]) for n in wanted)
        shown = Imaged(names, columns, there.key)
        keys, is_read = self._in_question(image, about, shown)
        is_emptied = batch.truncate and batch.mode in (Mode.MIRROR, Mode.MULTISET)
        if not is_read or is_emptied:
            none = pa.schema([pa.field(c.name, self.arrow(c)) for c in columns]).empty_table()
            image.put_live(replace(shown, is_read=False, wanted=keys), none)
            return is_emptied
        is_large = batch.truncate or batch.mode is Mode.HISTORY
        rows = self.read(names, columns, None if batch.truncate else keys)
        image.put_live(replace(shown, is_large=is_large), rows)
        return False

    def _in_question(
        self, image: Image, about: Merging, shown: Imaged
    ) -> tuple[pa.Table | None, bool]:
        """The keys of the rows that the batch may change, and whether these rows have to be read.
        Whole rows of a mirror are put over whatever is there."""
        batch, of = about.batch, relation(about.batch)
        if not merge.has_rows(batch):
            return None, batch.truncate and batch.mode not in LOGS
        staged = trees.table(about.staged).sql(dialect="duckdb")
        if batch.mode is Mode.MULTISET:
            key = [c for c in shown.columns if c.name == ROW_HASH]
        elif batch.mode in LOGS or batch.append_only or not batch.schema.key:
            return None, False
        else:
            by_name = {c.name: c for c in shown.columns}
            key = [by_name[n] for n in shown.key if n != ROW_ID]
        names = ", ".join(_quoted(c.name) for c in key)
        text = f"SELECT DISTINCT {names} FROM {staged}"
        if of.moved:
            origins = ", ".join(_quoted(of.origin(c.name)) for c in key)
            text += f" UNION SELECT {origins} FROM {staged} WHERE {_quoted(of.moved)}"
        wanted = pa.schema([pa.field(c.name, self.arrow(c)) for c in key])
        found = image.rows(text).rename_columns(wanted.names).cast(wanted)
        is_whole = batch.mode is Mode.MIRROR and not (batch.unsent or batch.no_inserts)
        return found, not is_whole or ROW_ID in shown.key

    # Commits

    def _pieces(self, changes: Iterable[Changed], most: int = 0) -> Iterator[Changed]:
        """The changes in parts that fit into a commit."""
        for one in changes:
            none = replace(one, rows=one.rows.slice(0, 0), gone=one.gone.slice(0, 0))
            if one.is_emptied:
                yield none
            none = replace(none, is_emptied=False)
            for gone in self._slices(one.gone, most or self.most_cells):
                yield replace(none, gone=gone)
            cells = one.rows.num_columns + 1
            for rows in self._slices(one.rows, max(1, (most or self.most_cells) // cells)):
                yield replace(none, rows=rows)

    def _slices(self, rows: pa.Table, most: int) -> Iterator[pa.Table]:
        for at in range(0, rows.num_rows, most):
            yield from self._halved(rows.slice(at, most))

    def _beside(self, pieces: Iterable[Changed], guard: Guard | None) -> Iterator[None]:
        """Write each part in a commit of its own, some of them at a time: no key is in two parts.
        Only a part that empties its table is written alone."""
        running: deque[Future[None]] = deque()
        with ThreadPoolExecutor(COMMITS_AT_ONCE, "commit") as pool:
            for piece in pieces:
                while running and (piece.is_emptied or len(running) >= COMMITS_AT_ONCE):
                    yield running.popleft().result()
                running.append(pool.submit(self.write, [piece], guard))
                while piece.is_emptied and running:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()

    def _halved(self, rows: pa.Table) -> Iterator[pa.Table]:
        if rows.num_rows > 1 and rows.nbytes > self.most_bytes:
            half = rows.num_rows // 2
            yield from self._halved(rows.slice(0, half))
            yield from self._halved(rows.slice(half))
        else:
            yield rows

    def _fits(self, changes: Sequence[Changed]) -> bool:
        cells = sum(c.rows.num_rows * (c.rows.num_columns + 1) + c.gone.num_rows for c in changes)
        size = sum(c.rows.nbytes for c in changes)
        return bool(cells <= self.most_cells and size <= self.most_bytes)

    def _commit(self, changes: Sequence[Changed], moved: Changed, before: pa.Table) -> None:
        """The changes with the progress row, in one commit or over the journal."""
        known = {r["target_table"]: r["commit_id"] for r in before.to_pylist()}
        gone = moved.gone.column("target_table").to_pylist()
        (table,) = [*moved.rows.column("target_table").to_pylist(), *gone] or [""]
        guard = Guard(moved.names, table, known.get(table, ""))
        if self._fits(changes):
            more = [] if table in self._swept else [_swept(table)]
            self.write([*changes, moved, *more], guard)
            self._swept.add(table)
            return
        after = moved.rows.to_pylist()[0]
        marked = {**before.to_pylist()[0], "commit_id": uuid.uuid4().hex}
        pieces = list(self._pieces(changes))
        self._journal(guard, marked, after, pieces)
        failpoints.hit("batch_journaled")
        self._finish(replace(guard, commit=marked["commit_id"]), pieces, after)

    def _journal(
        self, guard: Guard, marked: dict[str, Any], after: dict[str, Any], found: list[Changed]
    ) -> None:
        """Write the changes down, and then that they are complete."""
        sizes: list[int] = []

        def cells() -> Iterator[Changed]:
            for piece in found:
                body, first = _written(piece), sum(sizes) + 1
                cut = [body[at : at + CELL_BYTES] for at in range(0, len(body), CELL_BYTES)]
                sizes.append(len(cut))
                for part, one in enumerate(cut, first):
                    yield self._cell(guard.table, marked["commit_id"], part, one)

        for _ in self._beside(cells(), None):
            pass
        head = json.dumps({"after": after, "sizes": sizes}).encode()
        mark = self._row(guard.progress, marked)
        self.write([mark, self._cell(guard.table, marked["commit_id"], 0, head)], guard)

    def _settled(self, progress: Names, row: dict[str, Any]) -> bool:
        """Finish the merge that was written down when the progress row was written. False where
        there is none."""
        table, commit = row["target_table"], row["commit_id"]
        head = self._body(table, commit, 0)
        if head is None:
            return False
        guard, found = Guard(progress, table, commit), json.loads(head)
        self._finish(guard, self._journaled(guard, found["sizes"]), found["after"])
        return True

    def _journaled(self, guard: Guard, sizes: Sequence[int]) -> Iterator[Changed]:
        """The parts of a merge, as they were written down."""
        part = 0
        for size in sizes:
            numbers = range(part + 1, part + size + 1)
            bodies = [self._body(guard.table, guard.commit, n) or b"" for n in numbers]
            part += size
            yield _read(b"".join(bodies))

    def _finish(self, guard: Guard, pieces: Iterable[Changed], after: dict[str, Any]) -> None:
        """Apply a merge that is written down, part by part, and then its progress row."""
        for _ in self._beside(pieces, guard):
            failpoints.hit("journal_applied")
        self.write([self._row(guard.progress, after), _swept(guard.table)], guard)
        self._swept.add(guard.table)

    def _row(self, progress: Names, row: dict[str, Any]) -> Changed:
        arrow = pa.schema([pa.field(c.name, self.arrow(c)) for c in COLUMNS])
        key = pa.schema([arrow.field(n) for n in PROGRESS_KEY])
        return Changed(progress, pa.Table.from_pylist([row], arrow), key.empty_table())

    def _cell(self, table: str, commit: str, part: int, body: bytes) -> Changed:
        arrow = pa.schema([pa.field(c.name, self.arrow(c)) for c in JOURNALED])
        row = dict(zip(arrow.names, (table, commit, part, body), strict=True))
        key = pa.schema([arrow.field(n) for n in JOURNAL_KEY])
        return Changed(JOURNAL, pa.Table.from_pylist([row], arrow), key.empty_table())

    def _body(self, table: str, commit: str, part: int) -> bytes | None:
        key = pa.table({"target_table": [table], "commit_id": [commit], "part": [part]})
        rows = self.read(JOURNAL, JOURNALED, key)
        return bytes(rows.column("body")[0].as_py()) if rows.num_rows else None


def is_progress(names: Names) -> bool:
    """Whether it is the progress table."""
    return names[-1] == PROGRESS


def _swept(table: str) -> Changed:
    """What is written down for a table goes, whoever wrote it: the commit changes the progress row,
    so that no earlier process can mark it as complete any more."""
    gone = pa.table({"target_table": pa.array([table], pa.string())})
    return Changed(JOURNAL, pa.table({}), gone)


def _written(piece: Changed) -> bytes:
    """A part of a merge as bytes."""
    sink = pa.BufferOutputStream()
    head = {"names": piece.names, "is_emptied": piece.is_emptied}
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for rows in (piece.rows, piece.gone):
        named = rows.replace_schema_metadata({"piece": json.dumps(head)})
        with pa.ipc.new_stream(sink, named.schema, options=options) as out:
            out.write_table(named)
    return bytes(sink.getvalue())


def _read(body: bytes) -> Changed:
    source = pa.BufferReader(body)
    rows, gone = (pa.ipc.open_stream(source).read_all() for _ in range(2))
    head = json.loads(rows.schema.metadata[b"piece"])
    plain = rows.replace_schema_metadata(None), gone.replace_schema_metadata(None)
    return Changed(tuple(head["names"]), *plain, head["is_emptied"])


def _is_of_table(step: Step) -> bool:
    return not isinstance(step, Check) and isinstance(step.tree, _DDL)


def _tree(step: Step) -> exp.Expression | exp.Query:
    return step.query if isinstance(step, Check) else step.tree


def _names(table: exp.Table) -> Names:
    return tuple(part.name for part in table.parts)


def _assigned(step: Step) -> exp.EQ:
    """The assignment of an UPDATE of one column."""
    assert isinstance(step, Statement)
    found: exp.EQ = step.tree.expressions[0]
    return found


def _target(step: Step) -> Names | None:
    """The table that a statement changes."""
    if isinstance(step, Check):
        return None
    place = step.tree.this
    place = place.this if isinstance(place, exp.Schema) else place
    return _names(place) if isinstance(place, exp.Table) else None


def _asked(tree: exp.Expression | exp.Query) -> Iterator[str]:
    """The tables whose progress rows a statement speaks of, by `target_table = 'name'`."""
    for one in tree.find_all(exp.EQ):
        left, right = one.this, one.expression
        if isinstance(left, exp.Column) and left.name == "target_table":
            yield right.name[1:-1].replace("''", "'")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
