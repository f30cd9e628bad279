"""The client of Spanner for `KeyedClient`: tables by DDL, rows by key."""

# ruff: noqa: S608 - names go in through `quoted`

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.cloud.spanner_v1.types import Mutation, ReadRequest
from sqlglot import exp

from replicators.connectors.model.modes import Mode, extra_columns
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.image import ROW_ID, Changed
from replicators.connectors.sql.keyed import (
    JOURNAL,
    JOURNAL_KEY,
    MISSING,
    PROGRESS_KEY,
    Guard,
    KeyedClient,
    Layout,
)
from replicators.connectors.sql.staged import StagedFiles
from replicators.connectors.sql.state import PROGRESS
from replicators.connectors.sql.steps import Step
from replicators.connectors.target import CurrentRows
from replicators.connectors.tasks import Tasks
from replicators.targets.spanner import types
from replicators.targets.spanner.naming import MARK, decoded, encoded, quoted
from replicators.targets.spanner.params import SpannerParams
from replicators.targets.spanner.reading import SpannerRows
from replicators.targets.spanner.service import Service, delete, key_set, write

FIXED = "target:evolve"
COMMIT_TIME = "spanner.commit_timestamp()"
KEYS_A_READ = 2_000
_OF_TABLE = " UNION ALL ".join(
    f"SELECT '{part}' AS PART, {name} AS NAME, {kind} AS KIND, {place} AS PLACE "
    f"FROM INFORMATION_SCHEMA.{view} WHERE TABLE_SCHEMA = '' AND TABLE_NAME = @name{where}"
    for part, name, kind, place, view, where in (
        ("column", "COLUMN_NAME", "SPANNER_TYPE", "ORDINAL_POSITION", "COLUMNS", ""),
        ("key", "COLUMN_NAME", "''", "ORDINAL_POSITION", "INDEX_COLUMNS",
         " AND INDEX_TYPE = 'PRIMARY_KEY'"),
        ("mark", "CONSTRAINT_NAME", "''", "0", "TABLE_CONSTRAINTS",
         f" AND STARTS_WITH(CONSTRAINT_NAME, '{MARK}')"),
    )
)  # fmt: skip
"""What the catalog says of a table, in one query."""
_TABLES = (
    "SELECT DISTINCT TABLE_NAME FROM INFORMATION_SCHEMA.COLUMNS "
    "WHERE TABLE_SCHEMA = '' AND STARTS_WITH(TABLE_NAME, @prefix)"
)
_NUMBERED = (Mode.HISTORY, Mode.APPEND, Mode.MULTISET)
"""The modes in which several rows may have one key."""
_LOG = {c.name for c in extra_columns(Mode.APPEND)}
ROWS_AT_ONCE = 1 << 14


class SpannerClient(KeyedClient):
    """See `KeyedClient`. The identity of a table is the name of a constraint that always holds: it
    stays when columns are changed, and a table that was made by hand has none."""

    most_cells_of_copy = 80_000  # the service's limit, with those of indexes

    def __init__(self, params: SpannerParams, tasks: Tasks | None = None) -> None:
        super().__init__()
        self.params, self._tasks = params, tasks
        self.service = Service(params)
        self._marked: dict[Names, str] = {}

    def image_type(self, column: Column) -> str:
        """See `types`."""
        return types.image_type(column)

    def arrow(self, column: Column) -> pa.DataType:
        """See `types`."""
        return types.arrow(column)

    def column(self, name: str, native: str) -> Column:
        """See `types`."""
        return types.column(name, native)

    def close(self) -> None:
        """End the connections."""
        self.service.close()

    # Tables

    def table(self, names: Names) -> Layout | None:
        """The table, by the catalog."""
        name = encoded(names[-1])
        found = sorted(self.service.ask(_OF_TABLE, name=name), key=lambda row: int(row[3]))
        columns = {decoded(n): kind for part, n, kind, _ in found if part == "column"}
        self.known.pop(names, None)
        if not columns:
            return None
        key = tuple(decoded(n) for part, n, *_ in found if part == "key")
        marks = [n for part, n, *_ in found if part == "mark"]
        is_timed = columns.pop(self.params.commit_column, None) is not None
        self.known[names] = Layout(marks[0] if marks else "", columns, key, is_timed)
        return self.known[names]

    def tables(self, namespace: Names, prefix: str) -> tuple[str, ...]:
        """The names of tables that begin with `prefix`."""
        found = (decoded(n) for (n,) in self.service.ask(_TABLES, prefix=encoded(prefix)))
        return tuple(n for n in found if n.startswith(prefix))

    def make(self, names: Names, schema: TableSchema, *, job: str) -> None:
        """Make an empty table for a copy."""
        self.remove(names)
        columns, key = list(schema.supported), list(schema.key)
        there = {c.name for c in columns}
        added = ({c.name for c in extra_columns(mode)} for mode in _NUMBERED)
        if not key or any(more <= there for more in added):
            columns.append(Column(ROW_ID, String(), "", nullable=False))
            key = [ROW_ID] if there >= _LOG else [*key, ROW_ID]
        self._define(names, columns, key, self.params.commit_column)

    def define(self, names: Names, columns: Sequence[Column], key: Sequence[str]) -> None:
        """Make a table of our own."""
        self._define(names, columns, key, "")

    def _define(
        self, names: Names, columns: Sequence[Column], key: Sequence[str], time: str
    ) -> None:
        first, mark = quoted(key[0]), f"{MARK}{uuid.uuid4().hex[:16]}"
        lines = [f"{quoted(c.name)} {types.native(c)}" for c in columns]
        if time:
            lines.append(f"`{time}` TIMESTAMP OPTIONS (allow_commit_timestamp = true)")
        lines.append(f"CONSTRAINT `{mark}` CHECK ({first} IS NULL OR {first} IS NOT NULL)")
        body, keys = ",\n".join(lines), ", ".join(map(quoted, key))
        place = quoted(names[-1])
        self.service.change(f"CREATE TABLE IF NOT EXISTS {place} ({body}) PRIMARY KEY ({keys})")

    def remove(self, names: Names) -> None:
        """Remove a table."""
        self.known.pop(names, None)
        self.service.change(f"DROP TABLE IF EXISTS {quoted(names[-1])}")

    def alter(self, names: Names, action: exp.Expression) -> None:
        """ADD, DROP, or another name: Spanner renames no column, so its values go into a new one.
        `target:evolve` for a column of the key."""
        self.known.pop(names, None)
        alter = f"ALTER TABLE {quoted(names[-1])}"
        if isinstance(action, exp.ColumnDef):
            native = types.NATIVES[action.args["kind"].name]
            self.service.change(f"{alter} ADD COLUMN {quoted(action.this.name)} {native}")
            return
        there = self.table(names)
        if there is None:
            raise ReplicationError(MISSING)
        dropped = action.args["tables"][0] if isinstance(action, exp.Drop) else action.this
        name = dropped.name
        if name in there.key:
            raise ReplicationError(FIXED, change=f"the key column {name}")
        if isinstance(action, exp.RenameColumn):
            new = action.args["to"].name
            if new not in there.columns:
                self.service.change(f"{alter} ADD COLUMN {quoted(new)} {there.columns[name]}")
            put = f"SET {quoted(new)} = {quoted(name)}"
            self.service.everywhere(f"UPDATE {quoted(names[-1])} {put} WHERE TRUE")
        self.service.change(f"{alter} DROP COLUMN {quoted(name)}")
        self.known.pop(names, None)

    def fill(self, names: Names, column: Column, value: Any) -> None:
        """A partitioned UPDATE."""
        text = f"UPDATE {quoted(names[-1])} SET {quoted(column.name)} = "
        if value is None:
            self.service.everywhere(f"{text}NULL WHERE TRUE")
        else:
            held = pa.array([value], self.arrow(column))
            self.service.everywhere(f"{text}@value WHERE TRUE", types.native(column), held)

    def publish(
        self,
        staged: Names,
        live: Names,
        schema: TableSchema,
        record: Callable[[str], Sequence[Step]],
        *,
        job: str,
    ) -> None:
        """Put the staged table in the place of the live one, and then record it. The old table is
        dropped last. A repeat in the same process records what was put there."""
        old = (f"{staged[-1]}_old",)
        identity = self._marked.get(staged)
        if identity is None:
            there = self.table(staged)
            if there is None:
                raise ReplicationError(MISSING)
            identity = self._marked[staged] = there.identity
        now = self.table(live)
        if now is None or now.identity != identity:
            moves = f"{quoted(staged[-1])} TO {quoted(live[-1])}"
            if now is not None:
                self.remove(old)
                moves = f"{quoted(live[-1])} TO {quoted(old[-1])}, {moves}"
            self.service.change(f"RENAME TABLE {moves}")
            self.known.pop(live, None)
        self.run(record(identity), job=job)
        self.remove(old)
        self._marked.pop(staged, None)

    # Rows

    def _of(self, names: Names) -> Layout:
        """The table as it was seen last."""
        if names == JOURNAL:
            return Layout("", key=JOURNAL_KEY)
        if names[-1] == PROGRESS:
            return Layout("", key=PROGRESS_KEY)
        found = self.known.get(names) or self.table(names)
        if found is None:
            raise ReplicationError(MISSING)
        return found

    def read(self, names: Names, columns: Sequence[Column], keys: pa.Table | None) -> pa.Table:
        """Rows by key, or by the beginning of their key."""
        width = len(self._of(names).key)
        kinds = [self.arrow(c) for c in columns]
        shown = [encoded(c.name) for c in columns]
        parts = [None] if keys is None else [
            keys.slice(at, KEYS_A_READ) for at in range(0, keys.num_rows, KEYS_A_READ)
        ]  # fmt: skip
        table = encoded(names[-1])
        found = [self.service.read(table, shown, key_set(part, width), kinds) for part in parts]
        fields = [pa.field(c.name, kind) for c, kind in zip(columns, kinds, strict=True)]
        schema = pa.schema(fields)
        return pa.concat_tables(
            [schema.empty_table(), *(t.rename_columns(schema.names) for t in found)]
        )

    def write(self, changes: Sequence[Changed], guard: Guard | None) -> None:
        """One commit, in which the progress row is read first."""
        mutations = [m for one in changes for m in self._mutations(one)]
        expected = None
        if guard is not None:
            key = key_set(pa.table({"target_table": [guard.table]}), 1)
            request = ReadRequest(
                table=encoded(guard.progress[-1]), columns=["commit_id"], key_set=key
            )
            expected = request, [[guard.commit]] if guard.commit else []
        self.service.commit(mutations, expected)

    def _mutations(self, one: Changed) -> Iterator[Mutation]:
        there, table = self._of(one.names), encoded(one.names[-1])
        if one.is_emptied:
            yield delete(table, key_set(None, 0))
        if one.gone.num_rows:
            yield delete(table, key_set(one.gone, len(there.key)))
        if one.rows.num_rows:
            rows, columns = one.rows, [encoded(n) for n in one.rows.column_names]
            if there.is_timed:
                now = pa.repeat(pa.scalar(COMMIT_TIME), rows.num_rows)
                rows = rows.append_column("", now)
                columns.append(self.params.commit_column)
            yield write("insert_or_update", table, columns, rows)

    def append(self, names: Names, staged: StagedFiles) -> None:
        """The files' rows, a file in a task. Rows without a key get ids by their places, so that a
        repeat writes the same rows."""
        works = [Loading(self.params, names, replace(staged, paths=(p,))) for p in staged.paths]
        if self._tasks is None or len(works) == 1:
            for work in works:
                load(work)
        else:
            self._tasks.map(load, works)

    @contextmanager
    def current_rows(self, names: Names, schema: TableSchema, mode: Mode) -> Iterator[CurrentRows]:
        """The rows, each read of them at one moment."""
        there = self.table(names)
        if there is None:
            raise ReplicationError("target:table-missing", table=schema.id)
        yield SpannerRows(self.params, names, schema, mode, there.key)


@dataclass(frozen=True, slots=True)
class Loading:
    """A file of a copy, on its way into a table."""

    params: SpannerParams
    names: Names
    staged: StagedFiles


def load(work: Loading) -> None:
    """Write the file's rows, commit by commit."""
    with closing(SpannerClient(work.params)) as client:
        client.put(work.names, _rows(work, client._of(work.names).key[-1] == ROW_ID))


def _rows(work: Loading, is_numbered: bool) -> Iterator[pa.Table]:
    path = hashlib.sha256(work.staged.paths[0].encode()).hexdigest()[:20]
    count = 0
    for batch in work.staged.read(ROWS_AT_ONCE):
        rows = pa.Table.from_batches([batch])
        if is_numbered:
            places = pa.array(range(count, count + rows.num_rows)).cast(pa.string())
            rows = rows.append_column(ROW_ID, pc.binary_join_element_wise(path, places, "-"))
        count += rows.num_rows
        yield rows
