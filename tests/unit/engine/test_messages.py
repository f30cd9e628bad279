"""Changes and rows of a first copy as messages in JSON."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal as D
from typing import Any

import pyarrow as pa

from replicators.connectors.model.changes import Op, change_schema
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    String,
    Time,
    Timestamp,
)
from replicators.connectors.snapshot import Chunk
from runners.engine.fold.messages import FIRST_READ, ReadMessages, fold_messages
from tests.unit.engine.changes import SCHEMA, Change, table_of
from tests.unit.engine.mode_changes import EPOCH

AT = "2026-01-01T00:00:0{}.000000Z"
CHANGES = [
    Change(Op.INSERT, (1, "x"), ("a", None), at=1),
    Change(Op.UPDATE, (1, "x"), ("A", None), frozenset("b"), transaction=2, at=2),
    Change(Op.UPDATE, (2, 'y"'), ("A", "B"), old=(1, "x"), transaction=3, at=3),
    Change(Op.DELETE, (2, 'y"'), transaction=4, at=4),
    Change(Op.TRUNCATE, (0, "x"), transaction=5, at=5),
]


def _messages(changes: pa.Table, schema: TableSchema) -> list[tuple[Any, ...]]:
    rows = fold_messages(changes, schema).rows.to_pylist()
    assert {r["table"] for r in rows} <= {str(schema.id)}
    return [
        (r["message_id"], r["key"] and json.loads(r["key"]), json.loads(r["value"])) for r in rows
    ]


def test_every_change_is_a_message_under_the_key_that_it_is_about() -> None:
    """Guards the order of a changed key's halves, and rule 9: what the log did not carry is named
    and left out, never null."""

    def value(op: str, second: int, after: Any, **more: Any) -> dict[str, Any]:
        facts = {"_operation": op, "_committed_at": AT.format(second), "_transaction": second}
        return {**facts, "after": after, **more}

    first = {"id": 1, "part": "x", "a": "a", "b": None}
    named = {"id": 1, "part": "x", "a": "A"}
    moved = {"id": 2, "part": 'y"', "a": "A", "b": "B"}
    assert _messages(table_of(CHANGES), SCHEMA) == [
        (1, [1, "x"], value("insert", 1, first)),
        (3, [1, "x"], value("update", 2, named, _unsent=["b"])),
        (4, [1, "x"], value("delete", 3, None)),
        (5, [2, 'y"'], value("update", 3, moved)),
        (7, [2, 'y"'], value("delete", 4, None)),
        (9, None, value("truncate", 5, None)),
    ]


def test_whole_old_rows_are_told_and_fill_what_was_not_sent() -> None:
    """Guards the before image, and rule 9: with it no value is missing. A table without a key has
    messages too."""
    schema = replace(SCHEMA, key=(), full_before=True)
    old = {"id": 1, "part": "x", "a": "a", "b": "old"}
    rows = table_of(CHANGES[1:2]).drop_columns(["_before"]).to_pylist()
    rows += [{**rows[0], "_op": int(Op.DELETE), "_sequence": 1, "_unchanged": None}]
    changes = pa.Table.from_pylist([{**row, "_before": old} for row in rows], change_schema(schema))
    update, delete = _messages(changes, schema)
    assert (update[1], delete[1]) == (None, None)
    assert update[2]["after"] == {"id": 1, "part": "x", "a": "A", "b": "old"}
    assert (update[2]["before"], delete[2]["before"]) == (old, old)
    assert "_unsent" not in update[2] and delete[2]["after"] is None


def test_rows_of_the_first_copy_have_numbers_of_their_own_below_every_change() -> None:
    """Guards the order of a reader that goes by the number, over batches and chunks; the names of
    the messages' columns may be columns of the table."""
    columns = (Column("key", Int(32), "integer"), Column("value", String(), "text"))
    schema = TableSchema(TableId("shop", "odd.ones"), columns, ("key",), ("key",))
    rows = pa.table({"key": pa.array([7, 8], pa.int32()), "value": ["v", None]})
    read = ReadMessages(lambda *_: iter(rows.to_batches(1)), EPOCH)
    found = [
        row
        for number in (0, 3)
        for batch in read(Chunk(schema.id, number, None), schema)
        for row in batch.to_pylist()
    ]
    numbers = [r["message_id"] - FIRST_READ for r in found]
    assert numbers == [0, 1, 3 << 32, (3 << 32) + 1]
    assert max(r["message_id"] for r in found) < 0
    assert [json.loads(r["key"]) for r in found[:2]] == [[7], [8]]
    assert json.loads(found[0]["value"]) == {
        "_operation": "read",
        "_committed_at": AT.format(0),
        "after": {"key": 7, "value": "v"},
    }


def test_a_number_keeps_its_digits_a_document_its_text_and_the_rest_is_a_string() -> None:
    """Guards each type's form in JSON, also of values that JSON has no number for."""
    values: dict[str, tuple[Any, str, Any, str]] = {
        "amount": (Decimal(38, 4), "numeric(38,4)", D("12345678901234567890.1000"),
                   "12345678901234567890.1000"),
        "free": (String(), "numeric", "1.10", "1.10"),
        "lost": (String(), "numeric", "NaN", '"NaN"'),
        "frees": (Array(String()), "numeric[]", ["2.50", None, "-Infinity"],
                  '[2.50,null,"-Infinity"]'),
        "code": (String(), "text", "007", '"007"'),
        "big": (Int(64), "bigint", 2**63 - 1, "9223372036854775807"),
        "ratio": (Float(64), "double precision", float("inf"), '"Infinity"'),
        "none": (Float(64), "double precision", float("nan"), '"NaN"'),
        "flag": (Boolean(), "boolean", True, "true"),
        "raw": (Bytes(), "bytea", b"\x00\xff", '"AP8="'),
        "day": (Date(), "date", dt.date(1, 1, 1), '"0001-01-01"'),
        "clock": (Time(), "time", dt.time(7, 5), '"07:05:00.000000"'),
        "moment": (Timestamp(zone=True), "timestamptz", EPOCH, '"2026-01-01T00:00:00.000000Z"'),
        "doc": (Json(), "json", '{"n": 1.0, "n": 2}', '{"n": 1.0, "n": 2}'),
        "docs": (Array(Json()), "jsonb[]", ['{"a": 1}', None], '[{"a": 1},null]'),
        "span": (String(), "int4range", "[1,5)", '"[1,5)"'),
        "text": (String(), "text", 'q"\\\x00\n', r'"q\"\\\u0000\n"'),
    }  # fmt: skip
    columns = tuple(Column(n, kind, native) for n, (kind, native, _, _) in values.items())
    schema = TableSchema(TableId("shop", "odd"), columns)
    image = {n: [value] for n, (_, _, value, _) in values.items()}
    batch = pa.table(image, schema.arrow_schema()).to_batches()[0]
    (found,) = ReadMessages(lambda *_: iter([batch]), EPOCH)(Chunk(schema.id, 0, None), schema)
    shown = ",".join(f'"{n}":{text}' for n, (_, _, _, text) in values.items())
    assert found.column("value")[0].as_py().endswith(f'"after":{{{shown}}}}}')
    assert not found.column("key")[0].is_valid
