"""What files hold of each neutral type: nothing is lost, and nothing that was not sent passes for
NULL."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.arrow import json_text
from replicators.connectors.model.changes import Op, change_schema
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
from replicators.connectors.target import FitKind
from replicators.targets.files import jsonlines
from replicators.targets.files.records import Records, records
from replicators.targets.files.types import fit
from tests import replayed

ALL_CHARACTERS = "".join(map(chr, [*range(0x300), 0x2028, 0x2029, 0xFFFD, 0x1F600]))
VALUES: dict[LogicalType, list[Any]] = {
    Boolean(): [True, False],
    Int(16): [-(2**15), 0, 2**15 - 1],
    Int(32): [-(2**31), 2**31 - 1],
    Int(64): [-(2**63), 2**53 + 1, 2**63 - 1],
    Int(64, signed=False): [D(0), D(2**64 - 1)],
    Decimal(5, 0): [D(0), D(-99999)],
    Decimal(12, 2): [D("0.00"), D("-0.05"), D("9999999999.99")],
    Decimal(38, 10): [D("0.0000000001"), D("-0.0000000001"), D("9" * 28 + "." + "9" * 10),
    D("0E-10")],
    Decimal(38, 38): [D("0." + "0" * 37 + "1"), D("-0." + "9" * 38)],
    Float(32): [0.0, -0.0, 1.5, 3.4028234663852886e38, math.inf, -math.inf, math.nan],
    Float(64): [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e20, math.inf, -math.inf, math.nan],
    String(): ["", 'a"\\', ALL_CHARACTERS, "E", "null"],
    Bytes(): [b"", b"a", b"ab", b"abc", bytes(range(256))],
    Date(): [date(1, 1, 1), date(2026, 11, 24), date(9999, 12, 31)],
    Time(): [time(0), time(23, 59, 59, 999999)],
    Timestamp(zone=True): [datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    Timestamp(): [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1), datetime(9999, 12, 31)],
    Json(): ['{"a": 1, "a": 1.000000000000000000001}', '"\n"'],
    Uuid(): ["6f1c0c1e-4f8f-4e0a-9d3a-000000000000"],
    Enum(("calm", "so-so")): ["calm", "so-so"],
    Array(Int(32)): [[], [1, None, -2]],
    Array(String()): [["a,b", '"', None], [""]],
    Array(Bytes()): [[b"\x00", None]],
    Array(Decimal(38, 10)): [[D("0.0000000001"), None]],
    Array(Timestamp(zone=True)): [[datetime(2026, 11, 24, tzinfo=UTC)]],
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_each_value_of_each_type_is_the_same_when_it_is_read_again(kind: LogicalType) -> None:
    """Guards `json_text.value`: each type's whole range, with NULLs, and where the array is a part
    of a larger one."""
    values = [None, *VALUES[kind], None]
    array = pa.array(values, arrow_type(kind))
    for some, wanted in (
        (array, values),
        (array.slice(1), values[1:]),
        (array.slice(0, 1), [None]),
    ):
        texts = json_text.value(some, kind).to_pylist()
        found = [None if t is None else replayed.value(_strict(t), _reported(kind)) for t in texts]
        assert repr(found) == repr(wanted)
    assert len(json_text.value(array.slice(0, 0), kind)) == 0


def _strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def _reported(kind: LogicalType) -> dict[str, Any]:
    return json.loads(json.dumps(type_to_json(kind)))  # type: ignore[no-any-return]


def test_any_bytes_are_read_again() -> None:
    """Guards the vectorised base64 at every length modulo 3, among NULLs and empty values."""
    dice = random.Random(1)
    for _ in range(200):
        values = [
            dice.randbytes(dice.randrange(9)) if dice.random() < 0.8 else None for _ in range(9)
        ]
        texts = json_text.value(pa.array(values, pa.binary()), Bytes()).to_pylist()
        assert [t and replayed.value(json.loads(t), _reported(Bytes())) for t in texts] == values


def test_every_type_has_a_place_in_both_formats() -> None:
    """Guards `fit`: it names both formats, and nothing is lossy."""
    for kind in VALUES:
        reported = fit(kind)
        assert reported.kind in {FitKind.EXACT, FitKind.WIDENED}
        assert " / JSON" in reported.native
        assert bool(reported.reason) is (reported.kind is FitKind.WIDENED)
    for odd in (Unsupported("point"), Array(Unsupported("point")), Int(8)):
        assert fit(odd).kind is FitKind.UNSUPPORTED


def _schema(*, full: bool, key: tuple[str, ...] = ("id",), columns: int = 12) -> TableSchema:
    wide = [Column(f'c"{i}', String(), "text", ordinal=i + 2) for i in range(columns)]
    return TableSchema(
        TableId("s", "t"), (Column("id", Int(64), "int8", ordinal=1), *wide), key, key,
        full_before=full
    )  # fmt: skip


def _bits(schema: TableSchema, names: list[str]) -> bytes:
    made = bytearray((len(schema.columns) + 7) // 8)
    for i, column in enumerate(schema.columns):
        made[i >> 3] |= (column.name in names) << (i & 7)
    return bytes(made)


def _batch(schema: TableSchema, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    whole = [
        {"_sequence": i, "_committed_at": datetime(2026, 1, 1, tzinfo=UTC), "_transaction": 7,
         "_position": 1, "_unchanged": _bits(schema, r.pop("unsent")) if "unsent" in r else None,
         **r}
        for i, r in enumerate(rows, 1)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(whole, schema=change_schema(schema))


def _lines(found: Records, schema: TableSchema) -> list[dict[str, Any]]:
    text = jsonlines.lines(found, schema).to_pybytes().decode()
    assert text.endswith("\n")
    return [_strict(line) for line in text[:-1].split("\n")]


def test_what_was_not_sent_is_named_and_no_null() -> None:
    """Guards `_unsent` (CORRECTNESS 9), over more than one byte of bits: named in both formats, and
    left out of a line."""
    schema = _schema(full=False)
    lost = [c.name for c in schema.columns[1:] if int(c.name[2:]) % 2]
    found = records(
        _batch(schema, [
            {"_op": Op.UPDATE, "id": 1, 'c"0': "x", "unsent": lost},
            {"_op": Op.UPDATE, "id": 2, 'c"1': None},
            {"_op": Op.DELETE, "id": 3},
            {"_op": Op.TRUNCATE},
        ]),
        schema, 3, has_before=False,
    )  # fmt: skip
    rows = found.rows.to_pylist()
    assert [r["_unsent"] for r in rows] == [lost, None, None, None]
    assert [r["key"] for r in rows] == [{"id": 1}, {"id": 2}, {"id": 3}, None]
    assert [r["after"] is None for r in rows] == [False, False, True, True]
    assert {r["_schema"] for r in rows} == {3}
    lines = _lines(found, schema)
    assert set(lines[0]["after"]) == {c.name for c in schema.columns} - set(lost)
    assert set(lines[1]["after"]) == {c.name for c in schema.columns}
    assert [n for n in rows[0] if n not in lines[0]] == []
    cut = Records(found.rows, found.unsent).slice(1, 3)
    assert _lines(cut, schema) == lines[1:3]


def test_a_table_whose_every_column_may_be_unsent_still_gives_json() -> None:
    """Guards the commas of an object whose first field is left out in some rows."""
    schema = _schema(full=False, key=(), columns=2)
    names = [c.name for c in schema.columns]
    rows = [{"_op": Op.UPDATE, "id": 1, "unsent": names[:n]} for n in range(4)]
    rows += [{"_op": Op.UPDATE, "id": 2, 'c"0': ",x", "unsent": [names[0], names[2]]}]
    found = records(_batch(schema, rows), schema, 1, has_before=False)
    assert "key" not in found.rows.schema.names
    left = [set(line["after"]) for line in _lines(found, schema)]
    assert left == [set(names), set(names[1:]), set(names[2:]), set(), {names[1]}]


def test_whole_old_rows_fill_what_was_not_sent_and_are_kept_where_wanted() -> None:
    """Guards `before`, `old_key` and CORRECTNESS 9's first source of an unsent value."""
    schema = _schema(full=True, columns=2)
    old = {"id": 1, 'c"0': "old", 'c"1': "kept"}
    rows = [
        {"_op": Op.UPDATE, "id": 1, 'c"0': "new", "unsent": ['c"1'], "_before": old},
        {"_op": Op.UPDATE, "id": 9, 'c"0': "new", "_before": old},
        {"_op": Op.DELETE, "id": 1, "_before": old},
        {"_op": Op.INSERT, "id": 4, 'c"0': "x"},
        {"_op": Op.UPDATE, "id": 5, "unsent": ['c"1']},
    ]
    kept = records(_batch(schema, [dict(r) for r in rows]), schema, 1, has_before=True)
    found = kept.rows.to_pylist()
    assert found[0]["after"] == {"id": 1, 'c"0': "new", 'c"1': "kept"}
    assert [r["_unsent"] for r in found] == [None, None, None, None, ['c"1']]
    assert [r["old_key"] for r in found] == [None, {"id": 1}, None, None, None]
    assert [r["before"] for r in found] == [old, old, old, None, None]
    assert [line["before"] for line in _lines(kept, schema)] == [old, old, old, None, None]
    bare = records(_batch(schema, [dict(r) for r in rows]), schema, 1, has_before=False)
    assert "before" not in bare.rows.schema.names
    assert bare.rows.column("old_key") == kept.rows.column("old_key")


def test_a_changed_key_is_reported_without_whole_old_rows() -> None:
    """Guards CORRECTNESS 8 where only the old key is sent."""
    schema = _schema(full=False, columns=1)
    rows = [
        {"_op": Op.UPDATE, "id": 2, "_before": {"id": 1}},
        {"_op": Op.UPDATE, "id": 2, "_before": {"id": 2}},
        {"_op": Op.UPDATE, "id": 2},
        {"_op": Op.DELETE, "id": 2, "_before": {"id": 2}},
    ]
    found = records(_batch(schema, rows), schema, 1, has_before=False).rows
    assert found.column("old_key").to_pylist() == [{"id": 1}, None, None, None]
