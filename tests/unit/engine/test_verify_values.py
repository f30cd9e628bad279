"""Keys of differing rows as JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math

import pyarrow as pa
import pytest

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
    Time,
    Timestamp,
    Uuid,
)
from runners.engine.verify.values import keys_from_json, rows_to_json, shown

NOON = dt.datetime(2025, 7, 1, 12, 0, 0, 123456)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Int(64), [-(1 << 63), 0, (1 << 63) - 1]),
        (Int(64, signed=False), [decimal.Decimal((1 << 64) - 1)]),
        (Decimal(12, 3), [decimal.Decimal("-0.100"), decimal.Decimal("123456789.125")]),
        (Float(64), [0.1, -math.inf, 1e300]),
        (String(), ["", "a;b", "é\U0001f600", "@5"]),
        (Uuid(), ["00000000-0000-0000-0000-00000000000a"]),
        (Bytes(), [b"", b"\0\xff"]),
        (Boolean(), [True, False]),
        (Date(), [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
        (Time(), [dt.time(0), dt.time(23, 59, 59, 999999)]),
        (Timestamp(), [NOON, dt.datetime.min]),
        (Timestamp(zone=True), [NOON.replace(tzinfo=dt.UTC)]),
        (Array(Int(32)), [[1, None], []]),
        (Array(Date()), [[dt.date(2020, 1, 1)], None]),
    ],
)
def test_keys_come_back_exactly(kind: LogicalType, values: list[object]) -> None:
    schema = TableSchema(TableId("s", "t"), (Column("k", kind, ""),), ("k",), ("k",))
    keys = pa.table([pa.array(values, schema.arrow_schema().field("k").type)], ["k"])
    sent = json.loads(json.dumps(rows_to_json(keys)))
    assert keys_from_json(schema, sent).equals(keys.cast(schema.arrow_schema()))


def test_moments_that_python_cannot_hold_come_back() -> None:
    """PostgreSQL has dates up to the year 5874897."""
    schema = TableSchema(TableId("s", "t"), (Column("k", Date(), ""),), ("k",), ("k",))
    keys = pa.table([pa.array([-1_000_000, 3_000_000], pa.int32()).cast(pa.date32())], ["k"])
    assert keys_from_json(schema, rows_to_json(keys)).column("k").equals(keys.column("k"))


def test_a_key_of_another_table_is_refused() -> None:
    schema = TableSchema(TableId("s", "t"), (Column("k", Int(32), ""),), ("k",), ("k",))
    with pytest.raises(ValueError, match="has no column k"):
        keys_from_json(schema, [{"id": 1}])


def test_long_values_are_cut_for_people() -> None:
    cut = shown({"a": "x" * 900, "b": 5, "c": ["y" * 900]})
    assert len(str(cut["a"])) == 501
    assert cut["b"] == 5
