"""The table of PostgreSQL's types."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
    String,
    Time,
    Timestamp,
    Unsupported,
    Uuid,
    arrow_type,
)
from replicators.sources.postgresql.types import (
    BINARY_WIRES,
    PARTIAL,
    SCALARS,
    NativeType,
    builtin_type,
    column_type,
)


def numeric(precision: int, scale: int) -> NativeType:
    return NativeType(1700, "numeric", ((precision << 16) | (scale & 0x7FF)) + 4)


INT4 = NativeType(23, "int4")
MOOD = NativeType(20001, "mood", kind="e", labels=("sad", "ok"))

CASES = [
    (NativeType(16, "bool"), Boolean(), "bool"),
    (NativeType(21, "int2"), Int(16), "int2"),
    (INT4, Int(32), "int4"),
    (NativeType(20, "int8"), Int(64), "int8"),
    (NativeType(26, "oid"), Int(64), "oid"),
    (NativeType(700, "float4"), Float(32), "float4"),
    (NativeType(701, "float8"), Float(64), "float8"),
    (NativeType(1700, "numeric"), String(), "numeric_text"),
    (numeric(1, 0), Decimal(1, 0), "numeric"),
    (numeric(12, 2), Decimal(12, 2), "numeric"),
    (numeric(38, 38), Decimal(38, 38), "numeric"),
    (numeric(39, 0), String(), "numeric_text"),
    (numeric(76, 2), String(), "numeric_text"),
    (numeric(5, -2), String(), "numeric_text"),
    (numeric(2, 5), String(), "numeric_text"),
    (NativeType(25, "text"), String(), "text"),
    (NativeType(1043, "varchar", 24), String(20), "text"),
    (NativeType(1043, "varchar"), String(), "text"),
    (NativeType(1042, "bpchar", 7), String(3), "text"),
    (NativeType(19, "name"), String(), "text"),
    (NativeType(17000, "citext"), String(), "text"),
    (NativeType(17001, "hstore"), String(), "as_text"),
    (NativeType(142, "xml"), String(), "text"),
    (NativeType(114, "json"), Json(), "text"),
    (NativeType(3802, "jsonb"), Json(), "jsonb"),
    (NativeType(2950, "uuid"), Uuid(), "uuid"),
    (NativeType(17, "bytea"), Bytes(), "bytea"),
    (NativeType(1082, "date"), Date(), "date"),
    (NativeType(1083, "time"), Time(6), "time"),
    (NativeType(1083, "time", 3), Time(3), "time"),
    (NativeType(1114, "timestamp"), Timestamp(6, False), "timestamp"),
    (NativeType(1184, "timestamptz", 0), Timestamp(0, True), "timestamptz"),
    (NativeType(1266, "timetz"), String(), "as_text"),
    (NativeType(1186, "interval"), String(), "as_text"),
    (NativeType(869, "inet"), String(), "as_text"),
    (NativeType(3904, "int4range", kind="r"), String(), "as_text"),
    (NativeType(4451, "int4multirange", kind="m"), String(), "as_text"),
    (MOOD, Enum(("sad", "ok")), "text"),
    (NativeType(20002, "email", kind="d", base=NativeType(1043, "varchar", 14)), String(10),
    "text"),
    (NativeType(1007, "_int4", element=INT4), Array(Int(32)), "int4[]"),
    (replace(numeric(8, 3), oid=1231, name="_numeric", element=NativeType(1700, "numeric")),
     Array(Decimal(8, 3)), "numeric[]"),
    (NativeType(20003, "_mood", element=MOOD), Array(Enum(("sad", "ok"))), "text[]"),
    (NativeType(1041, "_inet", element=NativeType(869, "inet")), Array(String()), "as_text[]"),
]  # fmt: skip

UNSUPPORTED = [
    NativeType(20010, "vector"),
    NativeType(20011, "geometry"),
    NativeType(20012, "address", kind="c"),
    NativeType(20013, "int4"),
    NativeType(22, "int2vector", element=NativeType(21, "int2")),
    NativeType(1020, "_box", element=NativeType(603, "box")),
    NativeType(
        20017, "_area", element=NativeType(20016, "area", kind="d", base=NativeType(603, "box"))
    ),
    NativeType(20014, "_address", element=NativeType(20012, "address", kind="c")),
    NativeType(20015, "place", kind="d", base=NativeType(20012, "address", kind="c")),
]


@pytest.mark.parametrize(
    ("native", "expected", "wire"), CASES, ids=lambda v: getattr(v, "name", "")
)
def test_each_native_type_has_its_neutral_type_and_wire(native, expected, wire):
    """Guards the table of `postgresql.types`: a wrong scale or wire word is a wrong value in every
    row, and a wire without a reader fails at the first one."""
    assert column_type(native) == (expected, wire)
    assert arrow_type(expected) is not None
    assert wire.removesuffix("[]") == "as_text" or wire in BINARY_WIRES


@pytest.mark.parametrize("native", UNSUPPORTED, ids=lambda n: n.name)
def test_what_is_not_known_is_unsupported(native):
    """Guards `column_type` for types of users and extensions: known by a name like `int4` alone,
    their bytes would be read as something else."""
    assert column_type(native) == (
        Unsupported(native.base.name if native.base else native.name),
        "",
    )


def test_every_scalar_can_be_carried_and_what_is_kept_as_text_says_so():
    """Guards `SCALARS` against `BINARY_WIRES` and `PARTIAL`: a type that is carried as text without
    a word would surprise who reads the copy."""
    for name in SCALARS:
        kind, wire = column_type(NativeType(1, name))
        assert arrow_type(kind) is not None
        assert (wire in BINARY_WIRES) != (wire == "as_text")
        assert wire != "as_text" or wire in PARTIAL


def test_a_type_of_the_server_is_found_by_its_oid():
    """Guards `builtin_type`: a Relation carries OIDs only, and a type of the wrong name would
    decode the new schema's values wrongly."""
    assert column_type(builtin_type(1043, 14)) == (String(10), "text")
    assert column_type(builtin_type(1231, numeric(12, 2).typmod)) == (
        Array(Decimal(12, 2)),
        "numeric[]",
    )
    assert builtin_type(20001, -1) is None
