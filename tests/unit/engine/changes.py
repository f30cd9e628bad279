"""Change rows made by hand, and what a naive replay of them gives."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String

SCHEMA = TableSchema(
    TableId("shop", "things"),
    (
        Column("id", Int(64), "bigint"),
        Column("part", String(), "text"),
        Column("a", String(), "text"),
        Column("b", String(), "text"),
    ),
    key=("id", "part"),
)
Key = tuple[int, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change: `values` of a and b, `unsent` the names not sent, `old` the old key of a key
    change, `at` the commit's second."""

    op: Op
    key: Key
    values: tuple[str | None, str | None] = (None, None)
    unsent: frozenset[str] = frozenset()
    old: Key | None = None
    transaction: int = 1
    at: int = 0


def table_of(changes: list[Change]) -> pa.Table:
    """The change file's rows, sequence = place in the list."""
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = []
    for place, change in enumerate(changes):
        names = [c.name for c in SCHEMA.columns]
        bits = sum(1 << names.index(n) for n in change.unsent)
        image = dict(zip(("a", "b"), change.values, strict=True))
        rows.append(
            {
                "_sequence": place,
                "_op": int(change.op),
                "_committed_at": now + dt.timedelta(seconds=change.at),
                "_transaction": change.transaction,
                "_position": 1,
                "_unchanged": bytes([bits]) if bits else None,
                "id": change.key[0],
                "part": change.key[1],
                **{n: (None if n in change.unsent else v) for n, v in image.items()},
                "_before": None
                if change.old is None
                else {"id": change.old[0], "part": change.old[1]},
            }
        )
    return pa.Table.from_pylist(rows, schema=change_schema(SCHEMA))


def replay(start: dict[Key, Row], changes: list[Change]) -> dict[Key, Row]:
    """What the source holds after the changes, row by row: the oracle."""
    state = {k: dict(v) for k, v in start.items()}
    for change in changes:
        if change.op is Op.TRUNCATE:
            state.clear()
        elif change.op is Op.DELETE:
            state.pop(change.key, None)
        else:
            row = state.pop(change.old, {}) if change.old else dict(state.get(change.key, {}))
            image = dict(zip(("a", "b"), change.values, strict=True))
            row.update({n: v for n, v in image.items() if n not in change.unsent})
            state[change.key] = row
    return state


def apply(start: dict[Key, Row], folded: pa.Table, *, truncate: bool) -> dict[Key, Row]:
    """What a target that holds `start` holds after a merge of folded rows."""
    state = {} if truncate else {k: dict(v) for k, v in start.items()}
    result = dict(state)
    names = [c.name for c in SCHEMA.columns]
    for row in folded.to_pylist():
        key = (row["id"], row["part"])
        if row["_delete"]:
            result.pop(key, None)
            continue
        values = {n: row[n] for n in ("a", "b")}
        bits = row["_unsent"][0] if row["_unsent"] else 0
        origin = row["_origin"]
        base = (origin["id"], origin["part"]) if origin else key
        for n in ("a", "b"):
            if bits >> names.index(n) & 1:
                values[n] = state[base][n]
        result[key] = values
    return result
