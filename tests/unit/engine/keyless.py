"""Changes of a table without a key, with whole before images, and what a naive replay of them
gives."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String

SCHEMA = TableSchema(
    TableId("shop", "visits"),
    (Column("page", String(), "text"), Column("n", Int(32), "integer")),
    full_before=True,
)
Row = tuple[str | None, int | None]
VALUES: list[Row] = [("a", 1), ("a", None), (None, None), ("b", 1), ("", 1), (None, 1)]


@dataclass(frozen=True)
class Change:
    """One change, with the after image and the before image where it has them."""

    op: Op
    new: Row | None = None
    old: Row | None = None


def table_of(changes: Sequence[Change], schema: TableSchema = SCHEMA) -> pa.Table:
    """The change file's rows, sequence = place in the list."""
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [
        {
            "_sequence": place,
            "_op": int(change.op),
            "_committed_at": now,
            "_transaction": 1,
            "_position": 1,
            "_unchanged": None,
            **dict(zip(("page", "n"), change.new or (None, None), strict=True)),
            "_before": change.old and dict(zip(("page", "n"), change.old, strict=True)),
        }
        for place, change in enumerate(changes)
    ]
    return pa.Table.from_pylist(rows, schema=change_schema(schema))


def replay(start: Counter[Row], changes: Sequence[Change]) -> Counter[Row]:
    """What the source holds after the changes, row by row: the oracle."""
    state = Counter(start)
    for change in changes:
        if change.op is Op.TRUNCATE:
            state.clear()
            continue
        if change.old is not None:
            assert state[change.old] > 0
            state[change.old] -= 1
        if change.new is not None:
            state[change.new] += 1
    return +state


def workload(seed: int, count: int) -> tuple[Counter[Row], list[Change]]:
    """Rows at the start, equal ones among them, and changes that a source could send."""
    rng = random.Random(seed)
    start = Counter(rng.choices(VALUES, k=rng.randrange(12)))
    state, changes = Counter(start), []
    for _ in range(count):
        alive, act = list(state.elements()), rng.random()
        if act < 0.03:
            change = Change(Op.TRUNCATE)
        elif not alive or act < 0.4:
            change = Change(Op.INSERT, rng.choice(VALUES))
        elif act < 0.75:
            change = Change(Op.DELETE, old=rng.choice(alive))
        else:
            change = Change(Op.UPDATE, rng.choice(VALUES), rng.choice(alive))
        changes.append(change)
        state = replay(state, [change])
    return start, changes
