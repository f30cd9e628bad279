"""The bytes of a COPY, read back by psycopg's own parsers of the binary form."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.pq import Format

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
    arrow_type,
)
from replicators.connectors.model.types import (
    Decimal as DecimalType,
)
from replicators.targets.postgresql.encoding import (
    HEAD,
    ITEM_OIDS,
    TRAILER,
    Encoder,
    Field,
    UnfitValue,
    base_of,
)
from replicators.targets.postgresql.types import fit

ARRAY_OIDS = {
    "boolean": 1000, "smallint": 1005, "integer": 1007, "bigint": 1016, "real": 1021,
    "double precision": 1022, "numeric": 1231, "date": 1182, "time without time zone": 1183,
    "timestamp without time zone": 1115, "timestamp with time zone": 1185, "text": 1009,
    "bytea": 1001, "uuid": 2951,
}  # fmt: skip
TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=12)
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
MICROS = st.integers(0, (LAST - FIRST) // timedelta(microseconds=1))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda v: Decimal(v).scaleb(-scale, Context(prec=76)))


VALUES: dict[LogicalType, st.SearchStrategy[Any]] = {
    Boolean(): st.booleans(),
    Int(16): st.integers(-(2**15), 2**15 - 1),
    Int(32): st.integers(-(2**31), 2**31 - 1),
    Int(64): st.integers(-(2**63), 2**63 - 1),
    Int(64, signed=False): st.integers(0, 2**64 - 1).map(Decimal),
    DecimalType(12, 2): decimals(12, 2),
    DecimalType(3, 3): decimals(3, 3),
    DecimalType(38, 0): decimals(38, 0),
    DecimalType(38, 38): decimals(38, 38),
    DecimalType(38, 9): decimals(38, 9),
    Float(32): st.floats(width=32, allow_nan=False),
    Float(64): st.floats(allow_nan=False),
    String(): TEXT,
    Bytes(): st.binary(max_size=12),
    Json(): st.sampled_from(['{"a": 1}', "[]", '"é"', "null"]),
    Uuid(): st.uuids().map(str),
    Date(): st.dates(),
    Time(): st.times(),
    Timestamp(): MICROS.map(lambda v: FIRST + timedelta(microseconds=v)),
    Timestamp(zone=True): MICROS.map(
        lambda v: (FIRST + timedelta(microseconds=v)).replace(tzinfo=UTC)
    ),
}


def column_of(kind: LogicalType) -> st.SearchStrategy[list[Any]]:
    value = VALUES[kind.of] if isinstance(kind, Array) else VALUES[kind]
    if isinstance(kind, Array):
        value = st.lists(st.none() | value, max_size=3)
    return st.lists(st.none() | value, min_size=1, max_size=9)


def cells(data: bytes) -> Iterator[list[bytes | None]]:
    """The fields of each row of a binary COPY, without its head and trailer."""
    at = 0
    while at < len(data):
        (count,) = struct.unpack_from(">h", data, at)
        at, row = at + 2, []
        for _ in range(count):
            (size,) = struct.unpack_from(">i", data, at)
            at += 4
            row.append(None if size < 0 else data[at : at + size])
            at += max(size, 0)
        yield row


def read_back(native: str, data: bytes) -> list[Any]:
    """A single column's values as psycopg reads them."""
    base, is_array = base_of(native), native.endswith("[]")
    oid = ARRAY_OIDS[base] if is_array else ITEM_OIDS[base]
    load = Transformer().get_loader(oid, Format.BINARY).load
    found = []
    for (cell,) in cells(data):
        if cell is not None and base in ("json", "jsonb"):
            found.append(bytes(cell)[base == "jsonb" :].decode())
        else:
            found.append(None if cell is None else plain(load(cell)))
    return found


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC)
    return str(value) if isinstance(value, UUID) else value


KINDS = [*VALUES, *(Array(k) for k in VALUES if not isinstance(k, Json))]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_value_is_read_back(kind: LogicalType, data: st.DataObject) -> None:
    """Guards the binary form of each type, in slices too: fails where a value, a NULL or a place of
    a value in its row comes out otherwise."""
    values = data.draw(column_of(kind))
    first = data.draw(st.integers(0, len(values) - 1))
    array = pa.array(values, arrow_type(kind)).slice(first)
    batch = pa.RecordBatch.from_arrays([array], ["v"])
    encoder = Encoder([Field("v", fit(kind).native)], batch.schema)
    assert encoder.is_binary
    assert read_back(fit(kind).native, bytes(encoder.encode(batch))) == values[first:]


def test_columns_lie_in_their_order_and_the_copy_is_framed() -> None:
    """Guards the statement's order of columns, which may differ from the batch's."""
    batch = pa.RecordBatch.from_pydict({"a": ["x", None], "b": [1, 2]})
    encoder = Encoder([Field("b", "bigint"), Field("a", "jsonb")], batch.schema)
    data = encoder.head + bytes(encoder.encode(batch)) + encoder.tail
    assert data.startswith(HEAD) and data.endswith(TRAILER)
    one, two = cells(data[len(HEAD) : -len(TRAILER)])
    assert one == [struct.pack(">q", 1), b"\x01x"]
    assert two == [struct.pack(">q", 2), None]


def test_a_number_is_written_in_its_columns_width_or_refused() -> None:
    """Guards widened columns: a smaller Arrow type is written as the column's, and a number that is
    too large is an error and not another number."""
    batch = pa.RecordBatch.from_pydict({"n": pa.array([7], pa.int32())})
    assert read_back("bigint", bytes(Encoder([Field("n", "bigint")], batch.schema).encode(batch)))
    large = pa.RecordBatch.from_pydict({"n": pa.array([70_000], pa.int32())})
    with pytest.raises(UnfitValue):
        Encoder([Field("n", "smallint")], large.schema).encode(large)
    wrong = pa.RecordBatch.from_pydict({"u": ["no-uuid"]})
    with pytest.raises(UnfitValue):
        Encoder([Field("u", "uuid")], wrong.schema).encode(wrong)


def test_text_is_escaped_where_a_type_has_no_binary_form() -> None:
    """Guards the text form: delimiters, quotes and NULLs of values and of items."""
    batch = pa.RecordBatch.from_pydict({
        "i": ["1 day", None],
        "t": ["a\tb\nc\\N\r", "\\N"],
        "l": pa.array([['q"\\', None, "NULL", ""], []], pa.list_(pa.string())),
        "b": pa.array([b"\x00\xff", b""], pa.binary()),
        "d": pa.array([date(1, 2, 3), None]),
        "z": pa.array([datetime(2020, 1, 2, 3, 4, 5, 6, UTC), None], pa.timestamp("us", "UTC")),
        "h": pa.array([time(1, 2, 3, 4), None], pa.time64("us")),
        "f": [float("-inf"), 0.1],
    })  # fmt: skip
    natives = (
        "interval", "text", "text[]", "bytea", "date", "timestamp with time zone",
        "time without time zone", "double precision",
    )  # fmt: skip
    fields = [Field(n, t) for n, t in zip(batch.schema.names, natives, strict=True)]
    encoder = Encoder(fields, batch.schema)
    assert not encoder.is_binary and encoder.head == encoder.tail == b""
    assert bytes(encoder.encode(batch)).decode().split("\n") == [
        "1 day\ta\\tb\\nc\\\\N\\r\t"
        '{"q\\\\"\\\\\\\\",NULL,"NULL",""}\t\\\\x00ff\t0001-02-03\t'
        "2020-01-02 03:04:05.000006Z\t01:02:03.000004\t-inf",
        "\\N\t\\\\N\t{}\t\\\\x\t\\N\t\\N\t\\N\t0.1",
        "",
    ]


def test_natives_of_postgresql_stay_and_others_do_not() -> None:
    """Guards the types of a PostgreSQL source, and MySQL's that look alike."""
    from replicators.connectors.model.types import Enum
    from replicators.targets.postgresql.types import fit_column, native

    def kept(kind: LogicalType, text: str) -> str:
        return native(Column("c", kind, text), "to", {"citext": "public"})

    mood = Enum(("a", "b"))
    for text in ("interval", "inet", "tstzrange", "bit varying(5)", "time(3) with time zone"):
        assert kept(String(), text) == text
        assert kept(Array(String()), f"{text}[]") == f"{text}[]"
    assert kept(String(), "interval day to second(3)") == "interval day to second(3)"
    assert kept(Json(), "jsonb") == "jsonb" and kept(Json(), "json") == "json"
    assert kept(String(), "numeric") == "numeric"
    assert kept(String(), "numeric(50,3)") == "numeric(50,3)"
    assert kept(String(), "decimal(65,30) unsigned") == "numeric(65,30)"
    assert kept(mood, 'app."My Mood"') == '"to"."My Mood"'
    assert kept(Array(mood), "mood[]") == '"to"."mood"[]'
    assert kept(mood, "enum('a','b')") == "text"
    assert kept(String(), "citext") == '"public".citext'
    assert kept(String(), "public.hstore") == "text"
    for text in ("time", "time(6)", "set('a')", "inet6", "varchar(3)", "year", "app.thing"):
        assert kept(String(), text) == "text"
    assert fit_column(Column("c", Array(Float(32)), "vector(3)")).native == "real[]"
