"""What a SQL target remembers of its tables (CORRECTNESS 13): one row per table in a table of the
same namespace. The row changes in the transaction that changes the table's rows.

Every change of a row gives it a new `commit_id`, and only changes a row that still has the one that
was read. So if another run wrote meanwhile, nothing of a transaction remains, not even rows that
are only added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Int, LogicalType, String
from replicators.connectors.sql import trees
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.steps import Check, Statement, Step
from replicators.connectors.target import Token

PROGRESS = "_replicator_progress"
_KINDS: Mapping[str, LogicalType] = {
    "target_table": String(),
    "replicator": String(),
    "generation": Int(64),
    "sequence": Int(64),
    "table_uuid": String(),
    "table_identity": String(),
    "column_numbers": String(),
    "publishing": Int(64),
    "commit_id": String(),
}
COLUMNS = tuple(Column(name, kind, "") for name, kind in _KINDS.items())
"""The columns of the progress table."""
_BY_NAME = {c.name: c for c in COLUMNS}


@dataclass(frozen=True, slots=True)
class Progress:
    """A row of the progress table. `identity` is the database's own mark of the live table.
    `numbers` are the source's column numbers by the live table's column names. `publishing`: the
    generation whose publication has begun and is not recorded yet; 0: none. A row with generation 0
    was never published."""

    table: str
    replicator: str
    generation: int
    sequence: int
    uuid: str
    identity: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)
    publishing: int = 0
    commit: str = ""

    @property
    def token(self) -> Token:
        """The row as a token."""
        return Token(self.replicator, self.generation, self.sequence, self.uuid)

    def values(self) -> dict[str, Any]:
        """The row's values by column."""
        numbers = json.dumps(dict(self.numbers), sort_keys=True)
        found = (
            self.table,
            self.replicator,
            self.generation,
            self.sequence,
            self.uuid,
            self.identity,
            numbers,
            self.publishing,
            self.commit,
        )
        return dict(zip(_KINDS, found, strict=True))


def numbers_of(schema: TableSchema) -> dict[str, int]:
    """The source's column numbers. A column that was dropped and made again under its old name has
    another number."""
    return {c.name: c.ordinal for c in schema.supported}


def moved(read: Progress, sequence: int, commit: str) -> Progress:
    """The row after a merge up to `sequence`."""
    return replace(read, sequence=sequence, commit=commit)


def found(rows: pa.Table) -> Progress | None:
    """The row that `find` selected; None where there is none."""
    return next(iter(found_all(rows).values()), None)


def found_all(rows: pa.Table) -> dict[str, Progress]:
    """The rows by their tables. Two replicators that first published at the same time may have left
    two rows of a table: the same one always counts."""
    ordered = sorted(rows.to_pylist(), key=lambda row: str(row["commit_id"]), reverse=True)
    return {row["target_table"]: _progress(row) for row in ordered}


def _progress(values: dict[str, Any]) -> Progress:
    texts = {name: values[name] for name in _KINDS}
    numbers = json.loads(texts["column_numbers"])
    ordered = [texts[name] for name in _KINDS]
    ordered[list(_KINDS).index("column_numbers")] = numbers
    return Progress(*ordered)


class ProgressTable:
    """The queries and steps on a progress table."""

    def __init__(self, dialect: SqlDialect, names: tuple[str, ...]) -> None:
        self._dialect = dialect
        self._table = trees.table(names)

    def find(self, table: str) -> exp.Select:
        """The query of a table's row."""
        return self._selected(self._is("target_table", table))

    def all(self) -> exp.Select:
        """The query of all rows."""
        return self._selected(None)

    def _selected(self, where: exp.Expression | None) -> exp.Select:
        shown = [trees.column(name) for name in _KINDS]
        return trees.select(shown, self._table.copy(), where=where)

    def changed(self, read: Progress | None, row: Progress, code: str) -> tuple[Step, ...]:
        """Steps that put `row` in the place of the row that was read (None: there was none). If
        that row is not there any more, the `Check` fails with `code`. `row.commit` must be new."""
        write = self._insert(row) if read is None else self._update(read, row)
        is_ours = trees.all_of(
            self._is("target_table", row.table), self._is("commit_id", row.commit)
        )
        lost = trees.no(trees.exists(self._table.copy(), is_ours))
        one = trees.select([trees.whole(1)], trees.aliased(self._one(), "one"), where=lost)
        return Statement(write), Check(one, code, is_of_change=True)

    def forgotten(self, read: Progress) -> Step:
        """Remove the row that was read."""
        where = exp.Where(this=self._same(read))
        return Statement(exp.Delete(this=self._table.copy(), where=where))

    def _one(self) -> exp.Select:
        return exp.Select(expressions=[trees.called(trees.whole(1), "one")])

    def _insert(self, row: Progress) -> exp.Insert:
        values = row.values()
        shown = [trees.called(self._literal(n, v), n) for n, v in values.items()]
        is_known = trees.exists(self._table.copy(), self._is("target_table", row.table))
        chosen = trees.select(shown, trees.aliased(self._one(), "one"), where=trees.no(is_known))
        return trees.insert(self._table, list(values), chosen)

    def _update(self, read: Progress, row: Progress) -> exp.Update:
        before = read.values()
        changes = [
            trees.equal(trees.column(n), self._literal(n, v))
            for n, v in row.values().items()
            if v != before[n]
        ]
        where = exp.Where(this=self._same(read))
        return exp.Update(this=self._table.copy(), expressions=changes, where=where)

    def _same(self, read: Progress) -> exp.Expression:
        return trees.all_of(
            self._is("target_table", read.table), self._is("commit_id", read.commit)
        )

    def _is(self, name: str, value: str) -> exp.Expression:
        return trees.equal(trees.column(name), self._literal(name, value))

    def _literal(self, name: str, value: Any) -> exp.Expression:
        column = _BY_NAME[name]
        return self._dialect.literals.tree(column, value, self._dialect.native(column))
