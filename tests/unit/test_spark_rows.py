"""Rows of change files as rows of the data source's frames. No Spark session is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import time
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from replicators.connectors.model.changes import Op, faulty_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Unsupported,
    Uuid,
    arrow_type,
    type_to_json,
)
from replicators.spark.errors import ChangesError
from replicators.spark.rows import Reading, frame_rows
from replicators.spark.types import Names, frame_schema, spark_type
from tests.change_files import Change, changes_table

ORDERS = TableId("shop", "orders")
SCHEMA = TableSchema(
    ORDERS,
    (Column("id", Int(64), "bigint", False, 1), Column("note", String(), "text", ordinal=2)),
    ("id",),
    ("id",),
    7,
)
FULL = replace(SCHEMA, full_before=True)


def columns_of(schema: TableSchema) -> list[dict[str, Any]]:
    return [{"name": c.name, "type": type_to_json(c.type)} for c in schema.columns]


def reading(schema: TableSchema = SCHEMA, **values: Any) -> Reading:
    arrow = to_arrow_schema(frame_schema(columns_of(schema), Names()))
    usual = {"after": 0, "upto": 1 << 60, "position": 0}
    return Reading("shop.orders", Names(), arrow, **{**usual, **values})


def rows(
    changes: Sequence[Change], schema: TableSchema = SCHEMA, **values: Any
) -> list[dict[str, Any]]:
    made = frame_rows(changes_table(changes, schema), schema.key, reading(schema, **values))
    found: list[dict[str, Any]] = made.to_pylist()
    return found


def seen(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["_operation"], row["id"], row["note"], row["_unsent"], row["_before"])


def test_each_operation_is_a_row_with_what_the_log_has() -> None:
    """Guards the words, a delete's row, a key that changed, and what was not sent. All of these are
    NULL alike in the file."""
    found = rows(
        [
            Change(11, Op.INSERT, 1, "a"),
            Change(12, Op.UPDATE, 1, None, unsent=True),
            Change(13, Op.UPDATE, 2, None, before={"id": 1}),
            Change(14, Op.DELETE, 2),
            Change(15, Op.TRUNCATE),
        ]
    )
    assert [seen(r) for r in found] == [
        ("insert", 1, "a", None, None),
        ("update", 1, None, ["note"], None),
        ("update", 2, None, None, {"id": 1, "note": None}),
        ("delete", 2, None, ["note"], None),
        ("truncate", None, None, None, None),
    ]
    assert [r["_sequence"] for r in found] == [11, 12, 13, 14, 15]
    assert [r["_transaction"] for r in found] == [11, 12, 13, 14, 15]
    assert str(found[0]["_committed_at"]) == "2026-11-24 07:05:11+00:00"


def test_a_whole_old_row_fills_a_delete_and_what_was_not_sent() -> None:
    """Guards `_value`: with REPLICA IDENTITY FULL the log knows these values (CORRECTNESS 9)."""
    old = {"id": 1, "note": "old"}
    found = rows(
        [
            Change(11, Op.UPDATE, 1, None, before=old, unsent=True),
            Change(12, Op.UPDATE, 1, None, before=old),
            Change(13, Op.DELETE, 1, before=old),
            Change(14, Op.UPDATE, 1, None, unsent=True),
        ],
        FULL,
    )
    assert [seen(r) for r in found] == [
        ("update", 1, "old", None, old),
        ("update", 1, None, None, old),
        ("delete", 1, "old", None, old),
        ("update", 1, None, ["note"], None),
    ]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"after": 12}, [13, 14]),
        ({"upto": 12}, [11, 12]),
        ({"after": 11, "upto": 13, "position": 13}, [13]),
        ({"skipped": ("delete", "truncate")}, [11, 12, 14]),
        ({"after": 14}, []),
    ],
)
def test_only_wanted_changes_are_read(values: dict[str, Any], kept: list[int]) -> None:
    """Guards the ends of a range, the copy's position (CORRECTNESS 16) and skipped operations."""
    changes = [
        Change(11, Op.INSERT, 1, "a"),
        Change(12, Op.UPDATE, 1, "b"),
        Change(13, Op.DELETE, 1),
        Change(14, Op.INSERT, 1, "c"),
    ]
    assert [r["_sequence"] for r in rows(changes, **values)] == kept


def test_columns_go_by_name_and_a_missing_one_is_null() -> None:
    """Guards files of older and newer schemas in one frame: another order, a type that was
    narrower, a column that is not there, and one that the frame does not have."""
    newer = replace(
        SCHEMA,
        columns=(
            Column("added", String(), "text", ordinal=3),
            SCHEMA.columns[1],
            replace(SCHEMA.columns[0], type=Int(64)),
        ),
    )
    older = replace(
        SCHEMA,
        columns=(
            replace(SCHEMA.columns[0], type=Int(32)),
            SCHEMA.columns[1],
            Column("gone", Int(32), "int", ordinal=4),
        ),
    )
    changes = [Change(11, Op.INSERT, 1, "a", more=(("gone", 5),))]
    (row,) = frame_rows(changes_table(changes, older), ("id",), reading(newer)).to_pylist()
    assert (row["id"], row["note"], row["added"], "gone" in row) == (1, "a", None, False)


def test_a_value_that_does_not_fit_is_named() -> None:
    narrow = replace(SCHEMA, columns=(replace(SCHEMA.columns[0], type=Int(16)), SCHEMA.columns[1]))
    changes = changes_table([Change(11, Op.INSERT, 1 << 40, "a")], SCHEMA)
    with pytest.raises(ChangesError, match=r"shop\.orders\.id do not fit.*int16"):
        frame_rows(changes, ("id",), reading(narrow))


def test_values_that_could_not_be_carried_are_named() -> None:
    """Guards `_unsupported`: otherwise the NULL in their place looks like a value."""
    changes = changes_table([Change(11, Op.INSERT, 1), Change(12, Op.INSERT, 2, "b")], SCHEMA)
    marks = [pa.array([b"\x02", None]), pa.array(["note: infinity", None])]
    faulty = pa.Table.from_arrays([*changes.columns, *marks], schema=faulty_schema(SCHEMA))
    found = frame_rows(faulty, ("id",), reading()).to_pylist()
    assert [r["_unsupported"] for r in found] == [["note"], None]
    assert list(found[0])[:2] == ["id", "note"]


VALUES: list[tuple[LogicalType, Any, Any]] = [
    (Boolean(), True, True),
    (Int(16), -5, -5),
    (Int(32), 5, 5),
    (Int(64), 1 << 60, 1 << 60),
    (Int(64, signed=False), Number(2**64 - 1), Number(2**64 - 1)),
    (Decimal(10, 2), Number("1.50"), Number("1.50")),
    (Float(32), 0.5, 0.5),
    (Float(64), 0.1, 0.1),
    (String(5), "ä", "ä"),
    (Bytes(), b"\x00", b"\x00"),
    (Date(), None, None),
    (Time(), time(7, 5, 3, 20), "07:05:03.000020"),
    (Timestamp(6, True), None, None),
    (Timestamp(6, False), None, None),
    (Json(), "{}", "{}"),
    (Uuid(), "0", "0"),
    (Enum(("a",)), "a", "a"),
    (Array(Int(32)), [1, None], [1, None]),
    (Array(Time()), [time(1)], ["01:00:00.000000"]),
]


@pytest.mark.parametrize(("kind", "value", "shown"), VALUES, ids=lambda v: str(v)[:20])
def test_each_type_of_the_log_has_a_type_in_spark(
    kind: LogicalType, value: Any, shown: Any
) -> None:
    """Guards `spark_type`: a neutral type that it does not know stops every reader."""
    schema = replace(SCHEMA, columns=(*SCHEMA.columns, Column("value", kind, "native", ordinal=3)))
    changes = [Change(11, Op.INSERT, 1, "a", more=(("value", value),))]
    assert changes_table(changes, schema).schema.field("value").type == arrow_type(kind)
    (row,) = rows(changes, schema)
    assert row["value"] == shown


def test_every_neutral_type_is_in_the_table_above() -> None:
    known = {type(kind).__name__ for kind, _, _ in VALUES} | {Unsupported.__name__}
    assert known == {kind.__name__ for kind in LogicalType.__subclasses__()}
    with pytest.raises(ValueError, match="not known"):
        spark_type({"type": "Point"})
