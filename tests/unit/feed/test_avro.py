"""Messages in Avro, read by fastavro with the schemas that the registry would give."""

from __future__ import annotations

import io
import json
import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal as D
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicators.connectors.feed.avro_schema import field_names, key_schema, value_schema
from replicators.connectors.feed.messages import encoder
from replicators.connectors.feed.options import FeedOptions, SchemaIds
from replicators.connectors.model.changes import Op
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
    Uuid,
)
from tests.feeds import Change, Told, at, batch, expected
from tests.unit.feed.test_messages import ORIGIN, histories, table, valid_options

VALUES: dict[LogicalType, list[Any]] = {
    Boolean(): [True, False],
    Int(16): [-(2**15), 0, 2**15 - 1],
    Int(32): [-(2**31), -1, 63, 64, 2**31 - 1],
    Int(64): [-(2**63), -65, 0, 2**63 - 1],
    Int(64, signed=False): [D(0), D(2**64 - 1)],
    Decimal(5, 0): [D(0), D(127), D(128), D(-128), D(-129), D(-99999)],
    Decimal(12, 2): [D("0.00"), D("-0.05"), D("9999999999.99")],
    Decimal(38, 38): [D("0." + "0" * 37 + "1"), D("-0." + "9" * 38)],
    Decimal(38, 0): [D(10**38 - 1), D(1 - 10**38)],
    Float(32): [0.0, 1.5, 3.4028234663852886e38, math.inf],
    Float(64): [0.1, 5e-324, 1.7976931348623157e308, -math.inf],
    String(): ["", 'a"\\\x00', "\U0001f600" * 100],
    Bytes(): [b"", b"\x00\xff", bytes(range(256))],
    Date(): [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    Time(): [time(0), time(23, 59, 59, 999999)],
    Timestamp(zone=True): [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    ],
    Timestamp(): [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1)],
    Json(): ['{"a": [1, null]}'],
    Uuid(): ["6f1c0c1e-4f8f-4e0a-9d3a-000000000000"],
    Enum(("calm", "so-so")): ["calm", "so-so"],
    Array(Int(32)): [[], [1, None, -2], list(range(300))],
    Array(String()): [["a,b", '"', None], [""]],
    Array(Decimal(9, 2)): [[D("-1.28"), None]],
    Array(Boolean()): [[True, None, False]],
}


def read(schema: str, data: bytes, number: int | None) -> Any:
    """One value, all of whose bytes must be used."""
    if number is not None:
        assert struct.unpack(">bI", data[:5]) == (0, number)
        data = data[5:]
    stream = io.BytesIO(data)
    found = fastavro.schemaless_reader(stream, fastavro.parse_schema(json.loads(schema)), None)
    assert stream.read() == b""
    return found


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_each_value_of_each_type_is_the_same_when_it_is_read_again(kind: LogicalType) -> None:
    """Guards the bytes and the logical types: each type's whole range, with NULLs, and in a part of
    a larger batch."""
    columns = (Column("id", Int(64), "int8"), Column("v", kind, "native"))
    schema = TableSchema(TableId("s", "t"), columns, ("id",), ("id",))
    values = [None, *VALUES[kind], None, *VALUES[kind]]
    changes = [Change(Op.INSERT, {"id": i, "v": v}) for i, v in enumerate(values)]
    made = encoder(schema, FeedOptions(format="avro"), ORIGIN, SchemaIds(7, 2**31 + 1))
    whole = batch(schema, changes)
    for rows, want in ((whole, values), (whole.slice(2, 3), values[2:5])):
        found = made.encode(rows)
        text = value_schema(schema, made.options)
        read_values = [read(text, m, 2**31 + 1)["v"] for m in found.column("value").to_pylist()]
        assert read_values == [UUID(v) if v and kind == Uuid() else v for v in want]
        keys = [read(key_schema(schema), m, 7) for m in found.column("key").to_pylist()]
        assert [k["id"] for k in keys] == [c.row["id"] for c in changes][
            : len(keys)
        ] or rows is not whole


def test_not_a_number_and_minus_zero_are_kept() -> None:
    """Guards floats that equal nothing, or too much."""
    columns = (Column("v", Float(64), "float8"),)
    schema = TableSchema(TableId("s", "t"), columns)
    made = encoder(schema, FeedOptions(format="avro"))
    found = made.encode(batch(schema, [Change(Op.INSERT, {"v": v}) for v in (math.nan, -0.0)]))
    text = value_schema(schema, made.options)
    nan, zero = (read(text, m, None)["v"] for m in found.column("value").to_pylist())
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1


def _plain(options: FeedOptions, schema: TableSchema, told: Told) -> Told:
    """What a reader of Avro sees of an expected message: fields that are left out are null, and
    named."""
    names = [c.name for c in schema.columns]

    def row(found: Any) -> Any:
        if found is None:
            return None
        left = [n for n in names if n not in found]
        return {n: found.get(n) for n in names} | {"_unsent": left or None}

    value = told.value
    if value:
        value = dict(value)
        if options.envelope == "debezium":
            value = {n: v for n, v in value.items() if n != "transaction"}
            value |= {n: row(value[n]) for n in ("before", "after")}
            value["source"] = {**value["source"], "txId": value["source"]["txId"]}
        elif options.envelope == "diff" or options.record == "ALL":
            facts = _facts(options, value, "")
            value = {n: row(value.get(n)) for n in ("after", "before")} | facts
        else:
            facts = _facts(options, value, "_")
            is_all = value.get("_operation") == "truncate"
            value = row(dict.fromkeys(names) if is_all else value) | facts
    key = None if told.key is None else dict(zip(schema.key, told.key, strict=True))
    return Told(told.op, key, value, told.sequence, told.part)  # type: ignore[arg-type]


def _facts(options: FeedOptions, value: dict[str, Any], mark: str) -> dict[str, Any]:
    facts = {}
    if options.updated:
        facts[f"{mark}updated"] = datetime.fromisoformat(value[f"{mark}updated"])
    if options.truncates == "message":
        facts[f"{mark}operation"] = value.get(f"{mark}operation")
    return facts


@pytest.mark.parametrize("full", [False, True], ids=["old-keys", "old-rows"])
@pytest.mark.parametrize("plain", valid_options(), ids=lambda o: f"{o.envelope}-{o.record}")
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_every_history_gives_the_messages_that_are_written_down(
    full: bool, plain: FeedOptions, data: st.DataObject
) -> None:
    """Guards every envelope and record in Avro against the same rules, row by row."""
    options = FeedOptions(
        plain.envelope, plain.record, "avro",
        tombstones=data.draw(st.booleans()), last_only=data.draw(st.booleans()),
        updated=data.draw(st.booleans()),
        truncates="skip" if plain.envelope == "key_only"
        else data.draw(st.sampled_from(["skip", "message"])),
    )  # fmt: skip
    schema = table(full=full)
    changes = data.draw(histories(full=full))
    made = encoder(schema, options, ORIGIN, SchemaIds(1, 2)).encode(batch(schema, changes))
    found = [
        Told(
            Op(r["_op"]),
            r["key"] and read(key_schema(schema), r["key"], 1),
            r["value"] and read(value_schema(schema, options), r["value"], 2),
            r["_sequence"],
            r["_part"],
        )
        for r in made.to_pylist()
    ]
    assert found == [_plain(options, schema, t) for t in expected(schema, options, changes)]


def test_a_new_column_and_a_removed_one_are_read_by_old_and_new_schemas() -> None:
    """Guards compatible evolution in both directions."""
    columns = (Column("id", Int(64), "int8"), Column("a", String(), "text"))
    old = TableSchema(TableId("s", "t"), columns, ("id",), ("id",))
    new = TableSchema(
        TableId("s", "t"), (columns[0], Column("b", Int(32), "int4")), ("id",), ("id",)
    )
    for envelope in ("none", "diff", "debezium"):
        options = FeedOptions(envelope, format="avro")
        for writer, reader, row in ((old, new, {"id": 1, "a": "x"}), (new, old, {"id": 1, "b": 2})):
            made = encoder(writer, options, ORIGIN).encode(batch(writer, [Change(Op.INSERT, row)]))
            found: Any = fastavro.schemaless_reader(
                io.BytesIO(made.column("value")[0].as_py()),
                fastavro.parse_schema(json.loads(value_schema(writer, options))),
                fastavro.parse_schema(json.loads(value_schema(reader, options))),
            )
            found = found if envelope == "none" else found["after"]
            other = reader.columns[1].name
            assert found == {"id": 1, other: None, "_unsent": None}
            assert made.column("_committed_at")[0].as_py() == at(1)


def test_names_that_avro_does_not_allow_are_changed_and_never_meet() -> None:
    """Guards field names: the column's own name stands beside as `doc`."""
    names = ("a-b", "a_b", "a b", "1st", "größe")
    columns = tuple(Column(n, Int(32), "int4") for n in names)
    schema = TableSchema(TableId("my-schema", "1t"), columns, ("a b",), ("a b",))
    made = field_names(schema)
    assert list(made.values()) == ["a_b_2", "a_b", "a_b_3", "_1st", "gr__e"]
    value = json.loads(value_schema(schema, FeedOptions(format="avro")))
    assert value["namespace"] == "my_schema._1t"
    assert [f.get("doc") for f in value["fields"][:5]] == ["a-b", None, "a b", "1st", "größe"]
    assert fastavro.parse_schema(value)


def test_a_column_with_the_name_of_a_fact_keeps_it() -> None:
    """Guards `_updated` and `_operation` beside columns that are called so."""
    columns = (Column("_updated", Int(32), "int4"), Column("_operation", Int(32), "int4"))
    schema = TableSchema(TableId("s", "t"), columns)
    options = FeedOptions(format="avro", updated=True, truncates="message")
    rows = batch(
        schema, [Change(Op.INSERT, {"_updated": 1, "_operation": 2}), Change(Op.TRUNCATE, {})]
    )
    found = encoder(schema, options).encode(rows).column("value").to_pylist()
    first, second = (read(value_schema(schema, options), m, None) for m in found)
    assert first == {
        "_updated": 1, "_operation": 2, "_unsent": None, "__updated": at(1), "__operation": None
    }  # fmt: skip
    assert second["__operation"] == "truncate"
    texts = encoder(schema, FeedOptions(updated=True, truncates="message")).encode(rows)
    assert json.loads(texts.column("value")[1].as_py())["__operation"] == "truncate"
