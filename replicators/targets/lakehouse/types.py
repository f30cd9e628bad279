"""How neutral types fit a lakehouse table. Iceberg and Delta use the same Spark SQL types. Uses no
Spark session."""

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

_AS_TEXT = "kept as text"


def _integer(kind: Int) -> Fit:
    match kind:
        case Int(bits=32, signed=True):
            return Fit(FitKind.EXACT, "INT")
        case Int(bits=64, signed=True):
            return Fit(FitKind.EXACT, "BIGINT")
        case Int(bits=64):
            return Fit(FitKind.WIDENED, "DECIMAL(20,0)")
        case Int(bits=bits) if bits < 32:
            return Fit(FitKind.WIDENED, "INT")
        case Int(bits=32):
            return Fit(FitKind.WIDENED, "BIGINT")
    return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {kind.bits} bits")


def _array(kind: Array) -> Fit:
    inner = fit(kind.of)
    if inner.kind is FitKind.UNSUPPORTED:
        return inner
    return Fit(inner.kind, f"ARRAY<{inner.native}>", inner.reason)


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """The Spark SQL type for a neutral type, and how its values change. Nothing becomes text
    without a note."""
    match kind:
        case Boolean():
            return Fit(FitKind.EXACT, "BOOLEAN")
        case Int():
            return _integer(kind)
        case Decimal(precision=precision, scale=scale):
            return Fit(FitKind.EXACT, f"DECIMAL({precision},{scale})")
        case Float(bits=bits):
            return Fit(FitKind.EXACT, "FLOAT" if bits == 32 else "DOUBLE")
        case String():
            return Fit(FitKind.EXACT, "STRING")
        case Bytes():
            return Fit(FitKind.EXACT, "BINARY")
        case Date():
            return Fit(FitKind.EXACT, "DATE")
        case Timestamp(zone=zone):
            return Fit(FitKind.EXACT, "TIMESTAMP" if zone else "TIMESTAMP_NTZ")
        case Time():
            return Fit(FitKind.WIDENED, "STRING", "kept as text (HH:MM:SS.ffffff)")
        case Json() | Uuid() | Enum():
            return Fit(FitKind.WIDENED, "STRING", _AS_TEXT)
        case Array():
            return _array(kind)
        case Unsupported(native=native):
            return Fit(FitKind.UNSUPPORTED, "", f"type {native} is not known")
    raise ValueError(f"no fit for {kind}")
