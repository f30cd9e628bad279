"""Neutral types: their names in the form, their Spark types, and the types of Arrow that files
have."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as kinds

from replicators.connectors.model.types import (
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Timestamp,
    Unsupported,
    Uuid,
)

_WORDS: Mapping[str, LogicalType] = {
    "boolean": Boolean(),
    "bool": Boolean(),
    "smallint": Int(16),
    "int": Int(32),
    "integer": Int(32),
    "bigint": Int(64),
    "long": Int(64),
    "float": Float(32),
    "real": Float(32),
    "double": Float(64),
    "string": String(),
    "text": String(),
    "varchar": String(),
    "binary": Bytes(),
    "date": Date(),
    "timestamp": Timestamp(6, False),
    "timestamptz": Timestamp(6, True),
    "json": Json(),
    "uuid": Uuid(),
}
NAMES = (
    "boolean, smallint, int, bigint, float, double, decimal(p,s), string, binary, date, timestamp, "
    "timestamptz, json or uuid"
)
_DECIMAL = re.compile(r"(?:decimal|numeric)\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\)")
_WIDEST = 38


def type_of_text(text: str) -> LogicalType:
    """The type that a person names; ValueError for another word."""
    word = text.strip().lower()
    found = _DECIMAL.fullmatch(word)
    if found:
        precision, scale = int(found[1]), int(found[2] or 0)
        if not 1 <= precision <= _WIDEST or scale > precision:
            raise ValueError(f"a decimal has 1 to {_WIDEST} digits, and not more behind the point")
        return Decimal(precision, scale)
    if word not in _WORDS:
        raise ValueError(f"`{word}` is no type: write {NAMES}")
    return _WORDS[word]


def name_of(kind: LogicalType) -> str:
    """The name of a type, as people write it."""
    if isinstance(kind, Decimal):
        return f"decimal({kind.precision},{kind.scale})"
    return next((word for word, known in _WORDS.items() if known == kind), type(kind).__name__)


_SPARK: Mapping[type, str] = {
    Boolean: "boolean",
    String: "string",
    Json: "string",
    Uuid: "string",
    Bytes: "binary",
    Date: "date",
}


def spark_type(kind: LogicalType) -> str:
    """The Spark type that holds a value; ValueError where there is none."""
    match kind:
        case Int(bits=bits, signed=True):
            return {16: "smallint", 32: "int", 64: "bigint"}[bits]
        case Float(bits=bits):
            return {32: "float", 64: "double"}[bits]
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Timestamp(zone=zone):
            return "timestamp" if zone else "timestamp_ntz"
    if type(kind) in _SPARK:
        return _SPARK[type(kind)]
    raise ValueError(f"no Spark type for {kind}")


_ARROW: tuple[tuple[str, LogicalType], ...] = (
    ("is_boolean", Boolean()),
    ("is_int8", Int(16)),
    ("is_int16", Int(16)),
    ("is_uint8", Int(16)),
    ("is_int32", Int(32)),
    ("is_uint16", Int(32)),
    ("is_int64", Int(64)),
    ("is_uint32", Int(64)),
    ("is_uint64", Decimal(20, 0)),
    ("is_float16", Float(32)),
    ("is_float32", Float(32)),
    ("is_float64", Float(64)),
    ("is_string", String()),
    ("is_large_string", String()),
    ("is_binary", Bytes()),
    ("is_large_binary", Bytes()),
    ("is_fixed_size_binary", Bytes()),
    ("is_date", Date()),
    ("is_null", String()),
    ("is_time", String()),
    ("is_nested", Json()),
)


def type_of_arrow(kind: pa.DataType) -> LogicalType:
    """The neutral type of a column that a file has. Nested values become JSON."""
    if kinds.is_dictionary(kind):
        return type_of_arrow(kind.value_type)
    if kinds.is_decimal(kind):
        is_plain = 0 <= kind.scale <= kind.precision <= _WIDEST
        return Decimal(kind.precision, kind.scale) if is_plain else Unsupported(str(kind))
    if kinds.is_timestamp(kind):
        return Timestamp(6, kind.tz is not None)
    for test, neutral in _ARROW:
        if getattr(kinds, test)(kind):
            return neutral
    return Unsupported(str(kind))
