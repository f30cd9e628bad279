"""The closed set of neutral column types, with their Arrow form and their JSON form.

A source maps its native types onto these, and a target maps these onto its own. There is no default
branch: a type that a source does not know is `Unsupported`, which the assessment reports.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class LogicalType:
    """Base of the neutral types; the class name is the type's name in JSON."""


@dataclass(frozen=True, slots=True)
class Boolean(LogicalType):
    """True or false."""


@dataclass(frozen=True, slots=True)
class Int(LogicalType):
    """An integer of `bits` bits."""

    bits: int
    signed: bool = True


@dataclass(frozen=True, slots=True)
class Decimal(LogicalType):
    """An exact number with `precision` digits in all, `scale` of them after the point (0 <= scale
    <= precision <= 38)."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Float(LogicalType):
    """An IEEE 754 number of `bits` bits (32 or 64)."""

    bits: int


@dataclass(frozen=True, slots=True)
class String(LogicalType):
    """Text, UTF-8; `length` in characters where the source limits it."""

    length: int | None = None


@dataclass(frozen=True, slots=True)
class Bytes(LogicalType):
    """Raw bytes."""

    length: int | None = None


@dataclass(frozen=True, slots=True)
class Date(LogicalType):
    """A day of the proleptic Gregorian calendar."""


@dataclass(frozen=True, slots=True)
class Time(LogicalType):
    """A time of day without zone, `precision` digits of a second (at most 6)."""

    precision: int = 6


@dataclass(frozen=True, slots=True)
class Timestamp(LogicalType):
    """A moment (`zone` true: an instant in UTC) or a wall-clock reading (`zone` false), at most
    microseconds."""

    precision: int = 6
    zone: bool = False


@dataclass(frozen=True, slots=True)
class Json(LogicalType):
    """A JSON document, carried as its source's text."""


@dataclass(frozen=True, slots=True)
class Uuid(LogicalType):
    """A UUID, carried as 36 lower-case characters."""


@dataclass(frozen=True, slots=True)
class Enum(LogicalType):
    """One of `values`, carried as text."""

    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Array(LogicalType):
    """A one-dimensional list of `of`, whose elements may be NULL."""

    of: LogicalType


@dataclass(frozen=True, slots=True)
class Unsupported(LogicalType):
    """A native type that can't be copied; `native` is its name at the source."""

    native: str


_CLASSES: dict[str, type[LogicalType]] = {
    c.__name__: c
    for c in (
        Boolean, Int, Decimal, Float, String, Bytes, Date, Time, Timestamp, Json, Uuid, Enum, Array,
        Unsupported,
    )
}  # fmt: skip


def type_to_json(kind: LogicalType) -> dict[str, Any]:
    """The JSON form: `{"type": class name, parameter: value, ...}`."""
    if isinstance(kind, Array):
        return {"type": "Array", "of": type_to_json(kind.of)}
    return {"type": type(kind).__name__, **asdict(kind)}


def type_from_json(data: dict[str, Any]) -> LogicalType:
    """The inverse of `type_to_json`; KeyError for an unknown name."""
    cls = _CLASSES[data["type"]]
    if cls is Array:
        return Array(type_from_json(data["of"]))
    values = {f.name: data[f.name] for f in fields(cls) if f.name in data}
    if cls is Enum:
        values["values"] = tuple(values.get("values", ()))
    return cls(**values)


_FIXED: dict[LogicalType, pa.DataType] = {
    Boolean(): pa.bool_(),
    Int(16): pa.int16(),
    Int(32): pa.int32(),
    Int(64): pa.int64(),
    Int(64, signed=False): pa.decimal128(20, 0),
    Float(32): pa.float32(),
    Float(64): pa.float64(),
    Date(): pa.date32(),
}


def arrow_type(kind: LogicalType) -> pa.DataType:
    """The Arrow type that carries a value of `kind` in change files and snapshot batches."""
    match kind:
        case Decimal(precision=p, scale=s):
            return pa.decimal128(p, s)
        case String() | Json() | Uuid() | Enum():
            return pa.string()
        case Bytes():
            return pa.binary()
        case Time():
            return pa.time64("us")
        case Timestamp(zone=zone):
            return pa.timestamp("us", tz="UTC" if zone else None)
        case Array(of=of):
            return pa.list_(arrow_type(of))
    if kind in _FIXED:
        return _FIXED[kind]
    raise ValueError(f"no Arrow type for {kind}")
