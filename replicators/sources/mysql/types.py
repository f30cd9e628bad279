"""MySQL's and MariaDB's types in neutral words; what is not here is `Unsupported`. Reads no
catalog.

`column_type` gives beside the neutral type the `wire` word: how values look in log and snapshot.

| wire | neutral type |
|---|---|
| `tiny utiny small usmall medium umedium int uint big ubig year` | integers |
| `float double decimal` | the same; a decimal of more than 38 digits is `decimal_text` |
| `bit` | Boolean for BIT(1), otherwise an integer |
| `date datetime timestamp` | with `_text` or `_fail` behind it: what becomes of zero dates (nothing: NULL); `_any`: the like of 2021-02-31 is NULL too |
| `time` | text, as the server prints it: it may be negative and longer than a day |
| `text:<charset>` `bytes` `json` `json_text` `geometry` | text, bytes, JSON (MySQL's binary form; MariaDB's text), WKB |
| `enum set uuid inet4 inet6 vector` | text; vector: a list of floats |
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

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
    Timestamp,
    Unsupported,
    Uuid,
)
from replicators.sources.mysql.charsets import is_known

MAX_DECIMAL_PRECISION = 38
ZERO_DATES = {"null": "", "text": "_text", "fail": "_fail"}
ESCAPED = {"\\n": "\n", "\\r": "\r", "\\0": "\0"}
Known = tuple[LogicalType, str]


@dataclass(frozen=True, slots=True)
class NativeType:
    """A column as information_schema.columns describes it; `full` is COLUMN_TYPE. `is_json`:
    MariaDB checks that the text is JSON."""

    name: str
    full: str
    precision: int | None = None
    scale: int | None = None
    seconds_digits: int | None = None
    charset: str | None = None
    length: int | None = None
    is_json: bool = False


def column_type(native: NativeType, zero_dates: str = "null") -> Known:
    """The neutral type and the wire word; `Unsupported` and "" for an unknown type."""
    if "compressed" in native.full.lower().split("/*")[-1] and "/*" in native.full:
        return Unsupported(native.full), ""
    if "mariadb-5.3" in native.full.lower():
        # The table is older than MariaDB 10.1: the log does not tell the length of its values.
        return Unsupported(native.full), ""
    if native.name in MOMENTS:
        return moment(native.name, native.seconds_digits or 0, zero_dates)
    if native.name in INTEGERS:
        word = ("u" if "unsigned" in native.full.lower() else "") + INTEGERS[native.name]
        return INTEGER_TYPES[word], word
    if native.name in SCALARS:
        return SCALARS[native.name](native)
    return Unsupported(native.full), ""


def moment(name: str, digits: int, zero_dates: str) -> Known:
    """A date or a moment. The wire word includes the rule for zero dates."""
    wire = name + ZERO_DATES[zero_dates]
    if zero_dates == "text":
        return String(), wire
    if name == "date":
        return Date(), wire
    return Timestamp(digits, zone=name == "timestamp"), wire


def decimal(precision: int, scale: int) -> Known:
    """DECIMAL(precision, scale)."""
    if precision <= MAX_DECIMAL_PRECISION:
        return Decimal(precision, scale), "decimal"
    return String(), "decimal_text"


def bit(width: int) -> Known:
    """BIT(width)."""
    if width == 1:
        return Boolean(), "bit"
    return (Int(64, signed=False) if width == 64 else Int(64)), "bit"


def text(charset: str | None, length: int | None = None) -> Known:
    """Characters; bytes if there is no character set."""
    if charset is None or charset == "binary":
        return Bytes(), "bytes"
    if not is_known(charset):
        return Unsupported(f"text in {charset}"), ""
    return String(length), f"text:{charset}"


def labels(full: str) -> tuple[str, ...]:
    """The labels of `enum('a','it''s')` or `set(...)`, as information_schema prints them."""
    inner = full[full.index("(") + 1 : full.rindex(")")]
    return tuple(
        re.sub(r"''|\\.", lambda c: ESCAPED.get(c[0], c[0][1]), found, flags=re.DOTALL)
        for found in re.findall(r"'((?:[^'\\]|''|\\.)*)'", inner, flags=re.DOTALL)
    )


def has_labels(charset: str | None) -> bool:
    """Whether labels of ENUM and SET in this character set can be read."""
    return charset in (None, "binary") or is_known(charset)


def _labelled(native: NativeType) -> Known:
    if not has_labels(native.charset):
        return Unsupported(f"labels in {native.charset}"), ""
    return (Enum(labels(native.full)), "enum") if native.name == "enum" else (String(), "set")


def _text(native: NativeType) -> Known:
    if native.is_json:
        return Json(), "json_text"
    limited = native.length if native.name in ("char", "varchar") else None
    return text(native.charset, limited)


def _decimal(native: NativeType) -> Known:
    return decimal(native.precision or 0, native.scale or 0)


def _fixed(kind: LogicalType, wire: str) -> Callable[[NativeType], Known]:
    return lambda _native: (kind, wire)


MOMENTS = ("date", "datetime", "timestamp")
INTEGERS = {
    "tinyint": "tiny",
    "smallint": "small",
    "mediumint": "medium",
    "int": "int",
    "bigint": "big",
}
INTEGER_TYPES: dict[str, LogicalType] = {
    "tiny": Int(16), "utiny": Int(16), "small": Int(16), "usmall": Int(32), "medium": Int(32),
    "umedium": Int(32), "int": Int(32), "uint": Int(64), "big": Int(64),
    "ubig": Int(64, signed=False),
}  # fmt: skip
_GEOMETRY = _fixed(Bytes(), "geometry")
SCALARS: dict[str, Callable[[NativeType], Known]] = {
    "year": _fixed(Int(16), "year"),
    "float": _fixed(Float(32), "float"),
    "double": _fixed(Float(64), "double"),
    "decimal": _decimal,
    "bit": lambda native: bit(native.precision or 1),
    "time": _fixed(String(), "time"),
    "char": _text,
    "varchar": _text,
    "tinytext": _text,
    "text": _text,
    "mediumtext": _text,
    "longtext": _text,
    "binary": _fixed(Bytes(), "bytes"),
    "varbinary": _fixed(Bytes(), "bytes"),
    "tinyblob": _fixed(Bytes(), "bytes"),
    "blob": _fixed(Bytes(), "bytes"),
    "mediumblob": _fixed(Bytes(), "bytes"),
    "longblob": _fixed(Bytes(), "bytes"),
    "enum": _labelled,
    "set": _labelled,
    "json": _fixed(Json(), "json"),
    "uuid": _fixed(Uuid(), "uuid"),
    "inet4": _fixed(String(), "inet4"),
    "inet6": _fixed(String(), "inet6"),
    "vector": _fixed(Array(Float(32)), "vector"),
    "geometry": _GEOMETRY,
    "point": _GEOMETRY,
    "linestring": _GEOMETRY,
    "polygon": _GEOMETRY,
    "multipoint": _GEOMETRY,
    "multilinestring": _GEOMETRY,
    "multipolygon": _GEOMETRY,
    "geometrycollection": _GEOMETRY,
    "geomcollection": _GEOMETRY,
}

PARTIAL: dict[str, str] = {
    "decimal_text": "it is carried as text: only numbers of at most 38 digits have an exact type",
    "time": "it is carried as text: it may be negative or longer than a day",
    "geometry": "it is carried as WKB, without its SRID",
}
