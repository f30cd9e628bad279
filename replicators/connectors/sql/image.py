"""A part of a database's tables in DuckDB, in memory. A target whose service takes rows by key and
runs no MERGE gets the statements of every mode this way: they run on the image, and what they
changed is then written by key. Knows no service."""

# ruff: noqa: S608 - names go in quoted

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Self

import duckdb
import pyarrow as pa
from sqlglot import exp

from replicators.connectors.model.schema import Column
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.sql import tables, trees
from replicators.connectors.sql.client import Names
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.steps import Check, Step

ROW_ID = "_row_id"
"""The last key column of a table in which several rows have one key."""
_BEFORE = "_replicator_before"


@dataclass(frozen=True, slots=True)
class Imaged:
    """A table as the image has it. `key`: the names of its key columns there. `is_whole`: the image
    has all of its rows, or all that the statements ask for. Where it has none of them, the rows
    that statements leave out are those of `wanted`, the keys in question."""

    names: Names
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    is_read: bool = True
    is_large: bool = False
    wanted: pa.Table | None = None

    @property
    def place(self) -> str:
        """The table's name there."""
        return trees.table(self.names).sql(dialect="duckdb")


@dataclass(frozen=True, slots=True)
class Changed:
    """What statements made of a table: `rows` to put, `gone`: keys of rows that go. `is_emptied`:
    first all rows go."""

    names: Names
    rows: pa.Table
    gone: pa.Table
    is_emptied: bool = False


@dataclass
class Image:
    """One connection; not thread safe."""

    dialect: SqlDialect
    arrow: Any
    tables: dict[Names, Imaged] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._db = duckdb.connect(":memory:", config={"threads": 2})
        self._db.execute("SET TimeZone = 'UTC'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def put(
        self, names: Names, columns: Sequence[Column], batches: Iterable[pa.RecordBatch]
    ) -> None:
        """Make a table of these rows."""
        made = tables.create(self.dialect, trees.table(names), columns)
        if len(names) > 1:
            self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(names[0])}")
        self._db.execute(self.dialect.sql(made))
        schema = pa.schema([pa.field(c.name, self.arrow(c)) for c in columns])
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        with closing(reader):
            self._db.register("rows", reader)
            self._db.execute(
                f"INSERT INTO {trees.table(names).sql(dialect='duckdb')} SELECT * FROM rows"
            )
            self._db.unregister("rows")

    def put_live(self, one: Imaged, rows: pa.Table) -> None:
        """Make a table that statements may change; `changed` says what they did."""
        self.put(one.names, one.columns, rows.to_batches())
        self.tables[one.names] = one
        if one.is_read:
            before = _quoted(_BEFORE + one.names[-1])
            self._db.execute(f"CREATE TABLE {before} AS SELECT * FROM {one.place}")

    def rows(self, text: str) -> pa.Table:
        """The rows of a query, as plain Arrow."""
        return self._db.sql(text).to_arrow_table()

    def all_of(self, names: Names) -> pa.Table:
        """All rows of a table as they are now."""
        return self.rows(f"SELECT * FROM {self.tables[names].place}")

    def query(self, tree: exp.Query) -> pa.Table:
        """The rows of a query."""
        return self.rows(self.dialect.sql(tree))

    def run(self, steps: Sequence[Step]) -> None:
        """Run all steps. A `Check` that finds a row raises."""
        for step in steps:
            if isinstance(step, Check):
                if self._db.execute(self.dialect.sql(step.query)).fetchone() is not None:
                    raise ReplicationError(step.code)
            else:
                self._db.execute(self.dialect.sql(step.tree))

    def changed(self, names: Names, *, is_emptied: bool = False) -> Changed:
        """What the statements changed of a table. Rows without an id get one. Where the image has
        the rows of some keys, all of them are given: two values may be equal for DuckDB that are
        not the same, such as 0.0 and -0.0."""
        one = self.tables[names]
        before = _quoted(_BEFORE + names[-1])
        keys = ", ".join(map(_quoted, one.key))
        text = f"SELECT * FROM {one.place}"
        if one.is_read and one.is_large:
            text += f" EXCEPT ALL SELECT * FROM {before}"
        rows = self._fitted(self.rows(text), one.columns)
        if ROW_ID in rows.column_names:
            rows = _identified(rows)
        by_name = {c.name: c for c in one.columns}
        key = [by_name[k] for k in one.key]
        gone = pa.schema([pa.field(c.name, self.arrow(c)) for c in key]).empty_table()
        if is_emptied:
            return Changed(names, rows, gone, is_emptied)
        source = before
        if not one.is_read:
            if one.wanted is None:
                return Changed(names, rows, gone)
            self._db.register("wanted", one.wanted)
            source = "wanted"
        left = self.rows(f"SELECT {keys} FROM {source} EXCEPT SELECT {keys} FROM {one.place}")
        return Changed(names, rows, self._fitted(left, key))

    def _fitted(self, rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
        """The rows in the types that a client writes."""
        wanted = pa.schema([pa.field(c.name, self.arrow(c)) for c in columns])
        return rows.select(wanted.names).cast(wanted)


def _identified(rows: pa.Table) -> pa.Table:
    """The rows, each with an id."""
    at = rows.schema.get_field_index(ROW_ID)
    ids = rows.column(ROW_ID).to_pylist()
    made = [i if i is not None else secrets.token_hex(16) for i in ids]
    return rows.set_column(at, rows.schema.field(at), pa.array(made, rows.schema.field(at).type))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
