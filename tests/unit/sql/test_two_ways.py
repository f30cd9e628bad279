"""Every mode's statements run in DuckDB, as one MERGE and as several statements of a transaction:
both must leave the same rows, or both must refuse the batch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from replicators.connectors.model.modes import Mode, extra_columns, stored
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.sql import merge, tables, trees
from replicators.connectors.sql.dialect import Joined, SqlDialect
from replicators.connectors.sql.relation import Relation, relation
from replicators.connectors.sql.steps import Check, Step
from replicators.connectors.target import FoldedBatch, KeyRange
from tests.sql_dialects import DUCKDB

SCHEMA = TableSchema(
    TableId("s", "t"),
    (
        Column("k", Int(64), "", False, 1),
        Column("n", Int(64), "", True, 2),
        Column("a", String(), "", True, 3),
        Column("_delete", String(), "", True, 4),
    ),
    ("k", "n"),
    ("k", "n"),
)
TARGET, STAGED = trees.table(("main", "t")), trees.table(("main", "b"))
START = datetime(2024, 1, 1, tzinfo=UTC)
ONE = DUCKDB
SEVERAL = replace(DUCKDB, has_merge=False, has_any_value=False)
NAMED = replace(SEVERAL, joined=Joined.NAMED, has_null_safe=False)
HALF = replace(DUCKDB, has_by_source=False)
"""MERGE without BY SOURCE, as PostgreSQL 15 and Snowflake have it."""

Rows = list[tuple[Any, ...]]
Key = tuple[int, int | None]


class World:
    """A random table and a batch that fits its mode."""

    def __init__(self, seed: int, mode: Mode, *, no_inserts: bool = False) -> None:
        self._dice = random.Random(seed)
        self._keys: list[Key] = [(k, n) for k in range(5) for n in (None, 1)]
        has_unsent = self._dice.random() < 0.7 and mode is not Mode.MULTISET
        truncates = self._dice.random() < 0.3 and not (no_inserts and mode is Mode.MIRROR)
        is_moving = (has_unsent or no_inserts) and self._dice.random() < 0.7
        self.batch = FoldedBatch(
            SCHEMA,
            ("1", "2") if self._dice.random() < 0.5 else ("1",),
            7,
            1,
            unsent=("a",) if has_unsent else (),
            has_origins=is_moving or (mode is Mode.HISTORY and has_unsent),
            truncate=truncates,
            truncated_at=START + timedelta(hours=5) if truncates else None,
            ranges=(KeyRange(0, 5),) if self._dice.random() < 0.5 else (),
            keys=tuple(range(6)) if self._dice.random() < 0.3 and mode is not Mode.MULTISET else (),
            mode=mode,
            no_inserts=no_inserts,
        )
        self.relation: Relation = relation(self.batch)
        self.before = list(self._before())
        self.staged = list(self._staged())

    def _some_keys(self, share: float) -> list[Key]:
        return [k for k in self._keys if self._dice.random() < share]

    def _moment(self) -> datetime:
        return START + timedelta(hours=self._dice.randrange(10))

    def _before(self) -> Iterator[tuple[Any, ...]]:
        for key in self._some_keys(0.7):
            own = (*key, f"a{self._dice.randrange(100)}", "d")
            match self.batch.mode:
                case Mode.SOFT_DELETE:
                    gone = self._dice.random() < 0.3
                    yield (*own, gone, self._moment() if gone else None)
                case Mode.HISTORY:
                    ended = self._moment()
                    if self._dice.random() < 0.5:
                        yield (*own, START, ended, False)
                    if self._dice.random() < 0.7:
                        yield (*own, ended, None, True)
                case Mode.MULTISET:
                    for number in range(1, self._dice.randrange(1, 4)):
                        yield (*own, str(key).encode(), number)
                case _:
                    yield own

    def _staged(self) -> Iterator[tuple[Any, ...]]:
        if self.batch.mode is Mode.MULTISET:
            yield from self._counts()
            return
        for key in self._some_keys(0.6):
            several = bool(self.relation.rank and self.relation.moved)
            for _ in range(self._dice.randrange(1, 3) if several else 1):
                yield from self._of_key(key)

    def _of_key(self, key: Key) -> Iterator[tuple[Any, ...]]:
        mode, at = self.batch.mode, self._moment()
        if mode is Mode.HISTORY:
            if self._dice.random() < 0.8:
                yield self._row(key, gone=True, more=(at, None))
            if self._dice.random() < 0.7:
                middle = at + timedelta(hours=2)
                yield self._row(key, gone=False, more=(at, middle))
                yield self._row(key, gone=False, more=(middle, None))
            return
        gone = self._dice.random() < 0.3
        more: tuple[Any, ...] = ()
        if mode is Mode.SOFT_DELETE:
            more = (at if gone else None,)
        if self.relation.rank:
            more += (self._dice.randrange(1_000_000),)
        yield self._row(key, gone=gone, more=more)

    def _row(self, key: Key, *, gone: bool, more: Sequence[Any]) -> tuple[Any, ...]:
        keeps = gone and self.batch.mode in (Mode.MIRROR, Mode.HISTORY)
        lacks = bool(self.batch.unsent) and not keeps and self._dice.random() < 0.3
        is_moved = bool(self.relation.moved) and not keeps and self._dice.random() < 0.4
        if self.batch.mode is Mode.HISTORY and self.batch.unsent:
            is_moved = lacks
        origin = self._dice.choice(self._keys) if is_moved else (None, None)
        row: list[Any] = [*key, None if lacks else f"new{self._dice.randrange(100)}", "e", gone]
        row += [lacks] if self.batch.unsent else []
        row += [is_moved, *origin] if self.relation.moved else []
        return (*row, *more)

    def _counts(self) -> Iterator[tuple[Any, ...]]:
        many = [1, 2] if self.batch.truncate else [-2, -1, 1, 2, 3]
        for key in self._some_keys(0.6):
            for _ in self.batch.paths:
                yield (*key, "x", "e", str(key).encode(), self._dice.choice(many))

    def after(self, dialect: SqlDialect) -> Rows | str:
        """The table's rows after the batch, or the code with which it was refused."""
        with _database().cursor() as db:
            columns = stored(SCHEMA, self.batch.mode).columns
            _fill(db, dialect, TARGET, columns, self.before)
            _fill(db, dialect, STAGED, self.relation.columns, self.staged)
            failed = _run(db, dialect, merge.steps(dialect, TARGET, STAGED, self.batch))
            rows = sorted(db.sql("SELECT * FROM main.t").fetchall(), key=repr)
            db.execute("DROP TABLE main.t")
            db.execute("DROP TABLE main.b")
            return failed or rows


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _fill(
    db: duckdb.DuckDBPyConnection,
    dialect: SqlDialect,
    table: exp.Table,
    columns: Sequence[Column],
    rows: Rows,
) -> None:
    db.execute(dialect.sql(tables.create(dialect, table, columns)))
    if rows:
        marks = ", ".join("?" * len(columns))
        db.executemany(f"INSERT INTO {dialect.sql(table)} VALUES ({marks})", rows)


def _run(db: duckdb.DuckDBPyConnection, dialect: SqlDialect, steps: Sequence[Step]) -> str:
    for step in steps:
        if isinstance(step, Check):
            if db.sql(dialect.sql(step.query)).fetchall():
                return step.code
            continue
        db.execute(dialect.sql(step.tree))
    return ""


MODES = [
    (Mode.MIRROR, False),
    (Mode.SOFT_DELETE, False),
    (Mode.HISTORY, False),
    (Mode.MULTISET, False),
    (Mode.MIRROR, True),
    (Mode.SOFT_DELETE, True),
]


@pytest.mark.parametrize(("mode", "no_inserts"), MODES)
def test_several_statements_leave_what_one_merge_leaves(mode: Mode, no_inserts: bool) -> None:
    """Guards the path of engines without a full MERGE: an UPDATE that sees what an earlier
    statement of the same transaction wrote leaves other rows than one MERGE does."""
    refused = changed = 0
    for seed in range(40):
        world = World(seed, mode, no_inserts=no_inserts)
        expected = world.after(ONE)
        for other in (SEVERAL, NAMED, HALF):
            assert world.after(other) == expected, (seed, world.batch)
        refused += isinstance(expected, str)
        changed += expected != sorted(world.before, key=repr)
    assert changed > 25
    assert refused or no_inserts or mode is Mode.APPEND


def test_every_column_of_a_mode_is_staged() -> None:
    """Guards `relation`: a column that the mode's statements read and no file fills."""
    for mode, _ in MODES:
        made = relation(World(1, mode).batch)
        added = {c.name for c in extra_columns(mode)} - {"_is_deleted", "_is_current"}
        assert added <= {c.name for c in made.columns}
        assert len({c.name.casefold() for c in made.columns}) == len(made.columns)
