"""Digests of rows: the same for equal rows however they came, another for different ones (guards
CORRECTNESS 12)."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.engine.fold import row_hash
from runners.engine.fold.row_hash import DIGEST_BYTES, row_hashes

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [0, 1, -1, 2**31 - 1]),
    "float": (pa.float64(), [0.0, -0.0, 1.5, math.inf]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-1.50"), Decimal("0.00")]),
    "text": (pa.string(), ["", " ", "a", "A", "a ", "ä", "a\0"]),
    "bytes": (pa.binary(), [b"", b"\0", b"a"]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2026, 1, 1)]),
    "time": (pa.time64("us"), [dt.time(), dt.time(1, 2, 3)]),
    "wall": (pa.timestamp("us"), [dt.datetime(2026, 1, 1)]),
    "moment": (pa.timestamp("us", tz="UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    "list": (pa.list_(pa.string()), [[], [None], [""], ["a", "b"], ["ab"], ["a", None, "b"]]),
}


def hashes(**columns: pa.Array) -> list[bytes]:
    table = pa.table(columns)
    return list(row_hashes(table, table.column_names).to_pylist())


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.binary(max_size=400), min_size=1, max_size=8))
def test_the_digest_is_blake2b(rows: list[bytes]) -> None:
    """Guards the compiled loops, at lengths around a block's too."""
    rows = [*rows, b"", b"a" * 127, b"b" * 128, b"c" * 129, b"d" * 256]
    out = np.zeros((len(rows), 2), np.uint64)
    data = np.frombuffer(b"".join(rows), np.uint8)
    row_hash._digests(data, np.cumsum([len(r) for r in rows]), out)
    expected = [hashlib.blake2b(r, digest_size=DIGEST_BYTES).digest() for r in rows]
    assert [o.tobytes() for o in out] == expected


@pytest.mark.parametrize("kind", TYPES)
def test_different_values_of_a_type_give_different_digests(kind: str) -> None:
    """Guards lengths and items' marks: [a, b] and [ab], NULL and empty must differ."""
    arrow, values = TYPES[kind]
    found = hashes(c=pa.array([None, *values], arrow))
    assert len(set(found)) == len(values) + 1


def test_values_do_not_flow_into_each_other() -> None:
    """Guards names, tags and lengths: the same bytes in other columns, or of another type, are
    another row."""
    found = [
        *hashes(a=pa.array(["x"]), b=pa.array(["yz"])),
        *hashes(a=pa.array(["xy"]), b=pa.array(["z"])),
        *hashes(b=pa.array(["x"]), a=pa.array(["yz"])),
        *hashes(a=pa.array([b"x"]), b=pa.array([b"yz"])),
        *hashes(a=pa.array([1], pa.int64())),
        *hashes(a=pa.array([1], pa.timestamp("us"))),
    ]
    assert len(set(found)) == len(found)


def test_a_column_that_is_added_changes_no_digest_of_old_rows() -> None:
    """Guards "NULLs left out": an old row has NULL in the new column, and must be found by its old
    digest."""
    a, b = pa.array(["x", None]), pa.array([1, 2])
    assert hashes(a=a, b=b) == hashes(b=b, new=pa.nulls(2, pa.string()), a=a)


def test_a_wider_integer_or_float_keeps_the_digest() -> None:
    """Guards the common form of numbers: such a change of type writes no row of the copy again."""
    for narrow, wide in ((pa.int16(), pa.int64()), (pa.float32(), pa.float64())):
        values = pa.array([1, -2, None], narrow)
        assert hashes(a=values) == hashes(a=values.cast(wide))


def test_rows_in_slices_and_chunks_give_the_digests_of_whole_columns() -> None:
    """Guards offsets into Arrow's buffers: a snapshot's batches and a log's lie differently in
    memory."""
    whole = pa.table(
        {
            n: pa.array([None, *v, *v, None] * 3, t).slice(0, 7)
            for n, (t, v) in TYPES.items()
            if len(v) > 2
        }
    )
    expected = row_hashes(whole, whole.column_names).to_pylist()
    cut = pa.concat_tables([whole.slice(0, 2), whole.slice(2, 3), whole.slice(5)])
    assert row_hashes(cut, whole.column_names).to_pylist() == expected
    assert row_hashes(whole.slice(3, 2), whole.column_names).to_pylist() == expected[3:5]


def test_no_rows_have_no_digests() -> None:
    """Guards the empty edges of `row_hash.row_hashes`: a table without rows, and lists without
    items, have no buffers to read."""
    assert hashes(a=pa.array([], pa.list_(pa.int32()))) == []
    assert len(hashes(a=pa.array([[], None], pa.list_(pa.string())))) == 2
