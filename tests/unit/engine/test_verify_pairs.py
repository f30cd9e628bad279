"""Pair files, their buckets, and the rows that a comparison finds, without a run."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from replicators.connectors.closing import Closing
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import Chunk, SnapshotPoint
from runners.engine.tasks.local import LocalTasks
from runners.engine.verify import pairs, reading
from runners.engine.verify.hashing import ROW_SEED, hashes
from runners.engine.verify.pairs import Bucket, Plan
from runners.engine.verify.report import Kind
from runners.engine.verify.settle import Pending, odd
from runners.engine.verify.throttle import Throttle

NOON = dt.datetime(2025, 7, 1, 12, tzinfo=dt.UTC)
KINDS: dict[str, LogicalType] = {
    "id": Int(64), "part": String(), "price": Decimal(20, 2), "text": String(),
    "at": Timestamp(zone=True), "day": Date(), "blob": Bytes(), "ok": Boolean(), "ratio": Float(64),
    "tags": Array(String()), "small": Int(16),
}  # fmt: skip
SCHEMA = TableSchema(
    TableId("s", "t"),
    tuple(Column(n, k, "") for n, k in KINDS.items()),
    ("id", "part"),
    ("id", "part"),
)
Row = dict[str, Any]


def plan(folder: Path, *, buckets: int = 3, key: tuple[str, ...] = SCHEMA.key) -> Plan:
    return Plan(SCHEMA, tuple(KINDS), key, str(folder), buckets, 10_000)


class Rows:
    """Rows as both sides read them, in batches."""

    def __init__(self, rows: Sequence[Row], size: int = 7) -> None:
        self.table = pa.Table.from_pylist(list(rows), schema=SCHEMA.arrow_schema())
        self.size = size

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        yield from self.table.to_batches(self.size)

    def rows(
        self, columns: Sequence[str] = (), lower: Any = None, upper: Any = None
    ) -> Iterator[pa.RecordBatch]:
        # Sliced, so that Arrow's offsets are not 0.
        doubled = pa.concat_tables([self.table, self.table]).combine_chunks()
        yield from doubled.slice(self.table.num_rows).select(list(columns)).to_batches()

    def rows_by_keys(self, keys: pa.Table, columns: Sequence[str] = ()) -> pa.Table:
        raise NotImplementedError


def made(rng: random.Random, key: int) -> Row:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    return {
        "id": key // 2,
        "part": ("b", "ä;")[key % 2],
        "price": maybe(decimal.Decimal(rng.randrange(-500, 500)) / 100),
        "text": maybe("x" * rng.randrange(20)),
        "at": maybe(NOON + dt.timedelta(microseconds=rng.randrange(1 << 40))),
        "day": maybe(dt.date(2020, 1, 1) + dt.timedelta(days=rng.randrange(999))),
        "blob": maybe(rng.randbytes(rng.randrange(9))),
        "ok": maybe(rng.random() < 0.5),
        "ratio": maybe(rng.choice([0.5, float("nan"), -3e300])),
        "tags": maybe([maybe("t" * rng.randrange(3)) for _ in range(rng.randrange(3))]),
        "small": maybe(rng.randrange(9)),
    }


def candidates(source: Sequence[Row], target: Sequence[Row], at: Plan) -> list[pairs.Candidates]:
    chunk = Chunk(SCHEMA.id, 0, None)
    ours = pairs.read_source(chunk, read=Rows(source), plan=at)
    theirs = pairs.read_target(Rows(target), plan=at)
    assert (ours.rows, theirs.rows) == (len(source), len(target))
    return [pairs.compare(Bucket(n, ours.paths, theirs.paths), plan=at) for n in range(at.buckets)]


def found(source: Sequence[Row], target: Sequence[Row], at: Plan) -> pa.Table:
    every = [pairs.from_ipc(c.keys) for c in candidates(source, target, at) if c.keys]
    return pa.concat_tables([at.keys.empty_table(), *every])


@pytest.mark.parametrize("seed", range(6))
def test_exactly_the_damaged_rows_are_found(tmp_path: Path, seed: int) -> None:
    """Guards the comparison against a naive one, with every kind of damage at random rows, and the
    target's rows in another order."""
    rng = random.Random(seed)
    source = [made(rng, key) for key in range(300)]
    target = [dict(r) for r in source]
    expected: dict[tuple[Any, ...], Kind] = {}
    for at in rng.sample(range(300), 12):
        row = target[at]
        place = row["id"], row["part"]
        match rng.randrange(3):
            case 0:
                row["id"] = None
                expected[place] = Kind.MISSING
            case 1:
                column = rng.choice(list(KINDS)[2:])
                while same(row[column], source[at][column]):
                    row[column] = made(rng, 0)[column]
                expected[place] = Kind.DIFFERENT
            case 2:
                extra = {**row, "id": row["id"] + 1000}
                target.append(extra)
                expected[extra["id"], row["part"]] = Kind.EXTRA
    target = [r for r in target if r["id"] is not None]
    rng.shuffle(target)
    plan_ = plan(tmp_path)
    keys = found(source, target, plan_)
    assert {tuple(k.values()) for k in keys.to_pylist()} == set(expected)
    pending = Pending.of_keys(keys, plan_)
    differing = odd(pending, Rows(source).table, Rows(target).table, plan_)
    listed = differing.listed(100, plan_)
    assert {tuple(d.key.values()): d.kind for d in listed} == expected
    counts = {k: n for k in Kind if (n := differing.count(k))}
    assert counts == dict(Counter(expected.values()))
    assert all(bool(d.columns) is (d.kind is Kind.DIFFERENT) for d in listed)


def same(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("text", (None, "")),
        ("tags", (None, [], [None], [""], ["", ""])),
        ("blob", (None, b"", b"\0", b"\0\0")),
        ("price", (None, decimal.Decimal("1.00"), decimal.Decimal("0.01"))),
        ("at", (None, NOON, NOON + dt.timedelta(hours=2), NOON + dt.timedelta(microseconds=1))),
        ("ok", (None, False, True)),
        ("small", (None, 0, 1)),
        ("ratio", (None, 0.0, 1e-300)),
    ],
)
def test_values_that_look_alike_differ(column: str, values: tuple[Any, ...]) -> None:
    row = made(random.Random(1), 1)
    (batch,) = Rows([{**row, column: v} for v in values], 100).table.to_batches()
    assert len(np.unique(hashes(batch, list(KINDS), ROW_SEED))) == len(values)


def test_values_do_not_move_between_columns() -> None:
    """Guards the tags: without them ("ab", "c") is ("a", "bc"), and NULL moves from one to the
    next."""
    texts = [("ab", "c"), ("a", "bc"), ("abc", ""), (None, "abc"), ("abc", None), ("", "abc")]
    batch = pa.RecordBatch.from_pylist([{"a": a, "b": b} for a, b in texts])
    assert len(np.unique(hashes(batch, ["a", "b"], ROW_SEED))) == len(texts)


def test_without_a_key_rows_count(tmp_path: Path) -> None:
    rng = random.Random(5)
    once, twice, gone = (made(rng, key) for key in range(3))
    parts = candidates([once, twice, twice, gone], [once, twice, once], plan(tmp_path, key=()))
    rows = [np.frombuffer(c.rows, np.uint64).reshape(-1, 3)[:, 1:].tolist() for c in parts]
    assert sorted(count for part in rows for count in part) == [[1, 0], [1, 2], [2, 1]]


def test_rows_with_values_that_cannot_be_carried_are_left_out(tmp_path: Path) -> None:
    rows = [made(random.Random(2), key) for key in range(4)]
    table = Rows(rows).table
    marks = pa.array([None, b"\x08", None, None], FAULT_FIELDS[0].type)
    marked = table.append_column(FAULT_FIELDS[0], marks).append_column(
        FAULT_FIELDS[1], pa.array([None, "text: no", None, None])
    )
    reader = Rows(rows)
    reader.table = marked
    part = pairs.read_source(Chunk(SCHEMA.id, 0, None), read=reader, plan=plan(tmp_path))
    assert part.rows == 3
    assert pairs.from_ipc(part.held).to_pylist() == [{"id": 0, "part": "ä;"}]


@dataclass
class Session(Closing):
    """A consistent snapshot whose chunks stay good in the next one, while `place` is the same."""

    place: str
    closed: list[str]
    point: SnapshotPoint = SnapshotPoint("", Position(1))

    def is_alive(self) -> bool:
        return True

    def plan(self, table: TableSchema, *, rows_per_chunk: int) -> list[Chunk]:
        raise NotImplementedError

    def keyed_chunk(self, table: TableSchema, number: int, keys: pa.Table) -> Chunk:
        raise NotImplementedError

    def layout(self, table: TableSchema) -> str:
        return self.place

    def close(self) -> None:
        self.closed.append(self.place)


def one_row(chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
    """A chunk with one row, which has the chunk's number."""
    yield from Rows([made(random.Random(chunk.number), 2 * chunk.number)]).table.to_batches()


@pytest.mark.parametrize("places", [["here"] * 9, ["here", "elsewhere"]])
def test_a_long_reading_renews_its_snapshot(tmp_path: Path, places: list[str]) -> None:
    """Guards `read_source`: each chunk is read once, in snapshots that are closed after some
    minutes; a table that was rewritten meanwhile has other chunks."""
    waiting, closed, clock = list(places), list[str](), itertools.count(step=250)

    @contextmanager
    def opened() -> Iterator[reading.Source]:
        with Session(waiting.pop(0), closed) as session:
            yield reading.Source(session, one_row)

    tools = reading.Tools(LocalTasks(), Throttle(0, 0, lambda: False), lambda: False)
    chunks = [Chunk(SCHEMA.id, n, None) for n in range(20)]
    at = plan(tmp_path)
    with ExitStack() as held:
        source = held.enter_context(opened())

        def read() -> list[pairs.Part]:
            return reading.read_source(
                source, held, opened, tools, at, chunks, lambda _: None, timer=lambda: next(clock)
            )

        if "elsewhere" in places:
            with pytest.raises(ReplicationError) as err:
                read()
            assert err.value.code == "source:snapshot-lost"
            return
        parts = read()
    assert 2 < len(closed) < 9
    paths = tuple(path for part in parts for path in part.paths)
    found = [pairs.from_ipc(pairs.compare(Bucket(n, paths, ()), plan=at).keys) for n in range(3)]
    assert sorted(pa.concat_tables(found).column("id").to_pylist()) == list(range(20))
