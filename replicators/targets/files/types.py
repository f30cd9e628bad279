"""How Parquet and JSON lines store neutral types. Neither loses anything."""

from __future__ import annotations

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
)
from replicators.connectors.target import Fit, FitKind

EXACT, WIDENED = FitKind.EXACT, FitKind.WIDENED


def _integer(kind: Int) -> Fit:
    if kind.bits == 64 and not kind.signed:
        return Fit(WIDENED, "DECIMAL(20,0) / JSON number", "Parquet: a decimal of 20 digits")
    if kind.bits not in {16, 32, 64} or not kind.signed:
        return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {kind.bits} bits")
    return Fit(EXACT, f"INT{kind.bits} / JSON number")


def _array(kind: Array) -> Fit:
    inner = fit(kind.of)
    if inner.kind is FitKind.UNSUPPORTED:
        return inner
    parquet, _, json = inner.native.partition(" / ")
    return Fit(inner.kind, f"LIST of {parquet} / JSON array of {json}", inner.reason)


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """The target types for a neutral type, written as `Parquet / JSON lines`."""
    match kind:
        case Boolean():
            return Fit(EXACT, "BOOLEAN / JSON true or false")
        case Int():
            return _integer(kind)
        case Decimal(precision=precision, scale=scale):
            return Fit(EXACT, f"DECIMAL({precision},{scale}) / JSON string")
        case Float(bits=bits):
            parquet = "FLOAT" if bits == 32 else "DOUBLE"
            return Fit(EXACT, f"{parquet} / JSON number, or the string NaN, Infinity, -Infinity")
        case String():
            return Fit(EXACT, "STRING / JSON string")
        case Bytes():
            return Fit(EXACT, "BYTE_ARRAY / JSON string in base64")
        case Date():
            return Fit(EXACT, "DATE / JSON string 2026-11-24")
        case Timestamp(zone=True):
            return Fit(EXACT, "TIMESTAMP in UTC / JSON string 2026-11-24T07:05:00.000000Z")
        case Timestamp():
            return Fit(EXACT, "TIMESTAMP / JSON string 2026-11-24T07:05:00.000000")
        case Time():
            return Fit(EXACT, "TIME / JSON string 07:05:00.000000")
        case Json():
            return Fit(WIDENED, "STRING / JSON string", "kept as text, as the source wrote it")
        case Uuid() | Enum():
            return Fit(WIDENED, "STRING / JSON string", "kept as text")
        case Array():
            return _array(kind)
        case Unsupported(native=native):
            return Fit(FitKind.UNSUPPORTED, "", f"type {native} is not known")
    raise ValueError(f"no fit for {kind}")
