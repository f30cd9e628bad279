"""Changes by bucket: together they are all changes, and folded apart they end as folded in one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Float, Int, LogicalType, String
from runners.engine.fold.buckets import of_bucket
from runners.engine.fold.modes import folded

NAN = float("nan")
KEYS: dict[str, tuple[LogicalType, list[Any]]] = {
    "int": (Int(64), [-7, 0, 1, 2, 3, 4, 5, 1 << 62]),
    "text": (String(), ["", "a", "A", "a ", "ä", "b", "c"]),
    "list": (Array(Int(64)), [[], [1], [1, 2], [2, 1], [None], [12], [None, 1]]),
    "float": (Float(64), [0.0, -0.0, 1.5, -1.5, NAN, 2.5]),
}


def table_of(kind: LogicalType) -> TableSchema:
    columns = (Column("k", kind, "k", nullable=False), Column("v", Int(32), "int"))
    return TableSchema(TableId("s", "t"), columns, key=("k",), primary_key=("k",))


def changes_of(schema: TableSchema, keys: list[Any], seed: int) -> pa.Table:
    """Inserts, updates, updates that change the key, and deletes, each of the right rows."""
    rng, rows, held = random.Random(seed), [], list[Any]()
    for number in range(300):
        free = [k for k in keys if not any(same(k, h) for h in held)]
        asked = rng.random()
        row: dict[str, Any] = {"_sequence": number + 1, "_position": number + 1, "v": number}
        if free and (asked < 0.4 or not held):
            row |= {"_op": int(Op.INSERT), "k": rng.choice(free)}
            held.append(row["k"])
        elif asked < 0.6:
            row |= {"_op": int(Op.UPDATE), "k": rng.choice(held)}
        elif asked < 0.85 and free:
            old = held.pop(rng.randrange(len(held)))
            row |= {"_op": int(Op.UPDATE), "k": rng.choice(free), "_before": {"k": old}}
            held.append(row["k"])
        else:
            row |= {"_op": int(Op.DELETE), "k": held.pop(rng.randrange(len(held)))}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=change_schema(schema))


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def ends(schema: TableSchema, parts: list[pa.Table]) -> list[tuple[str, int, bool]]:
    """What the parts fold to: each key, its last value, and whether it is deleted."""
    rows = []
    for part in parts:
        for row in folded(part, schema, Mode.MIRROR).rows.to_pylist():
            key = row["k"] + 0.0 if isinstance(row["k"], float) else row["k"]
            rows.append((repr(key), -1 if row["_delete"] else row["v"], row["_delete"]))
    return sorted(rows)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("seed", range(8))
def test_folded_in_buckets_is_folded_in_one(kind: str, seed: int) -> None:
    """Guards that all changes of a key meet in one bucket, and that a changed key is taken away in
    the old one's."""
    logical, keys = KEYS[kind]
    schema = table_of(logical)
    changes = changes_of(schema, keys, seed)
    whole = ends(schema, [changes])
    for buckets in (2, 3, 7):
        parts = [
            of_bucket(changes, ("k",), n, buckets, moves=True).sort_by("_sequence")
            for n in range(buckets)
        ]
        assert ends(schema, parts) == whole


def test_without_a_key_each_change_is_in_one_bucket() -> None:
    """Guards against changes of a log or of a multiset that are left out or taken twice."""
    schema = table_of(Int(64))
    changes = changes_of(schema, KEYS["int"][1], 1)
    parts = [of_bucket(changes, (), n, 4, moves=False) for n in range(4)]
    found = sorted(s for p in parts for s in p.column("_sequence").to_pylist())
    assert found == changes.column("_sequence").to_pylist()


def test_keys_spread() -> None:
    """Guards against one bucket that takes everything: keys that follow each other, or share their
    low bits."""
    schema = table_of(Int(64))
    for step in (1, 1 << 10, 1 << 33):
        rows = [{"_sequence": n, "_op": 0, "k": n * step} for n in range(1000)]
        changes = pa.Table.from_pylist(rows, schema=change_schema(schema))
        sizes = [of_bucket(changes, ("k",), n, 4, moves=False).num_rows for n in range(4)]
        assert max(sizes) < 400 and sum(sizes) == 1000


def test_the_two_zeros_are_one_key_and_nan_is_itself() -> None:
    """Guards `fold.one_zero`: PostgreSQL sends a changed key where 0 becomes -0, which are one key
    at the target: a delete and an upsert of it would be two rows of one merge, which fails for
    ever. Guards the comparison of append's keys: NaN is not a changed key."""
    schema = replace(table_of(Float(64)), full_before=True)
    pairs = [(-0.0, 0.0), (NAN, NAN), (2.5, 1.5)]
    rows = [
        {"_sequence": n, "_op": int(Op.UPDATE), "k": new, "v": n, "_before": {"k": old, "v": 0}}
        for n, (new, old) in enumerate(pairs)
    ]
    changes = pa.Table.from_pylist(rows, schema=change_schema(schema))
    found = folded(changes, schema, Mode.MIRROR).rows.to_pylist()
    assert sorted((str(r["k"]), r["_delete"]) for r in found) == [
        ("-0.0", False), ("1.5", True), ("2.5", False), ("nan", False),
    ]  # fmt: skip
    logged = folded(changes, schema, Mode.APPEND).rows.column("_operation").to_pylist()
    assert logged == ["update", "update", "delete", "update"]
