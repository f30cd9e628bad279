"""Random tables and batches for every mode, and what a SQL engine makes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sqlglot import exp

from replicators.connectors.model.modes import Mode, stored
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Boolean, Int, String
from replicators.connectors.sql import merge, tables, trees
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.relation import Relation, relation
from replicators.connectors.sql.steps import Check
from replicators.connectors.target import FoldedBatch, KeyRange

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
START = datetime(2024, 1, 1, tzinfo=UTC)
MODES = [
    (Mode.MIRROR, False),
    (Mode.SOFT_DELETE, False),
    (Mode.HISTORY, False),
    (Mode.MULTISET, False),
    (Mode.MIRROR, True),
    (Mode.SOFT_DELETE, True),
]
"""Each mode, and whether inserts are left out."""

Rows = list[tuple[Any, ...]]
Key = tuple[int, int | None]


class Runs(Protocol):
    """Something that runs a statement and gives its rows."""

    def __call__(self, text: str) -> Rows: ...


Rows = list[tuple[Any, ...]]
Key = tuple[int, int | None]


class World:
    """A random table and a batch that fits its mode. Every other one has NULLs in its keys."""

    def __init__(self, seed: int, mode: Mode, *, no_inserts: bool = False) -> None:
        self._dice = random.Random(seed)
        has_nulls = bool(seed % 2)
        second = replace(SCHEMA.column("n"), nullable=has_nulls)
        columns = tuple(second if c.name == "n" else c for c in SCHEMA.columns)
        self._keys: list[Key] = [(k, n) for k in range(5) for n in (None if has_nulls else 2, 1)]
        has_unsent = self._dice.random() < 0.7 and mode is not Mode.MULTISET
        truncates = self._dice.random() < 0.3 and not (no_inserts and mode is Mode.MIRROR)
        is_moving = (has_unsent or no_inserts) and self._dice.random() < 0.7
        self.batch = FoldedBatch(
            replace(SCHEMA, columns=columns),
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

    def after(self, dialect: SqlDialect, run: Runs, namespace: str = "") -> Rows | str:
        """The table's rows after the batch, or the code with which it was refused."""
        target, staged = (trees.table(tuple(filter(None, (namespace, n)))) for n in ("t", "b"))
        columns = stored(SCHEMA, self.batch.mode).columns
        for table in (target, staged):
            run(dialect.sql(tables.drop(table)))
        _fill(run, dialect, target, columns, self.before)
        _fill(run, dialect, staged, self.relation.columns, self.staged)
        for step in merge.steps(dialect, target, staged, self.batch):
            if not isinstance(step, Check):
                run(dialect.sql(step.tree))
            elif run(dialect.sql(step.query)):
                return step.code
        rows = run(f"SELECT * FROM {dialect.sql(target)}")
        return sorted((_plain(columns, row) for row in rows), key=repr)


def _fill(
    run: Runs, dialect: SqlDialect, table: exp.Table, columns: Sequence[Column], rows: Rows
) -> None:
    run(dialect.sql(tables.create(dialect, table, columns)))

    def written(row: tuple[Any, ...]) -> str:
        values = zip(columns, row, strict=True)
        return ", ".join(dialect.literals.literal(c, v, dialect.native(c)) for c, v in values)

    if rows:
        run(f"INSERT INTO {dialect.sql(table)} VALUES ({'), ('.join(map(written, rows))})")


def _plain(columns: Sequence[Column], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row in the same Python types for every driver."""

    def plain(column: Column, value: Any) -> Any:
        if isinstance(column.type, Boolean):
            return None if value is None else bool(value)
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        return value

    return tuple(plain(c, v) for c, v in zip(columns, row, strict=True))


def many(seeds: int, mode: Mode, *, no_inserts: bool) -> Iterator[World]:
    """That many worlds of a mode."""
    for seed in range(seeds):
        yield World(seed, mode, no_inserts=no_inserts)
