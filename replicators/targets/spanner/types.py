"""How neutral types fit Spanner's (GoogleSQL), and what holds their values in DuckDB and Arrow.
Asks no server."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.model.schema import Column
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

TEXT, SCALE, WHOLE = "STRING(MAX)", 9, 29
_UTC = "kept as the instant that the wall clock shows in UTC: Spanner has no type without a zone"
_JSON = (
    "kept as text: Spanner's JSON refuses numbers that it would round, and sorts keys (PARSE_JSON)"
)
_MOMENT = pa.timestamp("us", tz="UTC")
_HELD: dict[str, tuple[LogicalType, str, pa.DataType]] = {
    "BOOL": (Boolean(), "BOOLEAN", pa.bool_()),
    "INT64": (Int(64), "BIGINT", pa.int64()),
    "FLOAT32": (Float(32), "FLOAT", pa.float32()),
    "FLOAT64": (Float(64), "DOUBLE", pa.float64()),
    "NUMERIC": (Decimal(38, SCALE), f"DECIMAL(38,{SCALE})", pa.decimal128(38, SCALE)),
    TEXT: (String(), "VARCHAR", pa.string()),
    "BYTES(MAX)": (Bytes(), "BLOB", pa.binary()),
    "DATE": (Date(), "DATE", pa.date32()),
    "TIMESTAMP": (Timestamp(6, zone=True), "TIMESTAMP WITH TIME ZONE", _MOMENT),
}
"""Each type of ours: a neutral type that has it, and how an image and Arrow hold it."""


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """The type for a neutral type, and how its values change."""
    match kind:
        case Boolean():
            return Fit(FitKind.EXACT, "BOOL")
        case Int(bits=64, signed=False):
            return Fit(FitKind.WIDENED, "NUMERIC")
        case Int(bits=bits):
            if bits > 64:
                return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {bits} bits")
            return Fit(FitKind.EXACT if bits == 64 else FitKind.WIDENED, "INT64")
        case Decimal(precision=precision, scale=scale):
            if scale > SCALE or precision - scale > WHOLE:
                note = f"kept as text: NUMERIC has {WHOLE} digits before the point, {SCALE} behind"
                return Fit(FitKind.WIDENED, TEXT, note)
            return Fit(FitKind.EXACT, "NUMERIC")
        case Float(bits=bits):
            return Fit(FitKind.EXACT, f"FLOAT{bits}")
        case String():
            return Fit(FitKind.EXACT, TEXT)
        case Time() | Uuid() | Enum():
            return Fit(FitKind.WIDENED, TEXT, "kept as text")
        case Json():
            return Fit(FitKind.WIDENED, TEXT, _JSON)
        case Bytes():
            return Fit(FitKind.EXACT, "BYTES(MAX)")
        case Date():
            return Fit(FitKind.EXACT, "DATE")
        case Timestamp(zone=zone):
            if zone:
                return Fit(FitKind.EXACT, "TIMESTAMP")
            return Fit(FitKind.WIDENED, "TIMESTAMP", _UTC)
        case Array(of=of):
            inner = fit(of)
            if inner.kind is FitKind.UNSUPPORTED:
                return inner
            return Fit(inner.kind, f"ARRAY<{inner.native}>", inner.reason)
        case Unsupported(native=name):
            return Fit(FitKind.UNSUPPORTED, "", f"type {name} is not known")
    raise ValueError(f"no fit for {kind}")


def native(column: Column) -> str:
    """The text of a column's type, as CREATE TABLE has it."""
    return fit(column.type).native


def column(name: str, shown: str) -> Column:
    """A column of one of Spanner's types; one that is not ours is read as text."""
    if shown.startswith("ARRAY<"):
        return Column(name, Array(column("", shown[6:-1]).type), "")
    return Column(name, _HELD.get(shown, _HELD[TEXT])[0], "")


def image_type(one: Column) -> str:
    """The DuckDB type for a column."""
    if isinstance(one.type, Array):
        return f"{_HELD[fit(one.type.of).native][1]}[]"
    return _HELD[native(one)][1]


NATIVES = {image: shown for shown, (_, image, _) in _HELD.items()}
NATIVES |= {f"{image}[]": f"ARRAY<{shown}>" for shown, (_, image, _) in _HELD.items()}
"""Spanner's types by the DuckDB types."""


def arrow(one: Column) -> pa.DataType:
    """The Arrow type in which values are written and read."""
    if isinstance(one.type, Array):
        return pa.list_(_HELD[fit(one.type.of).native][2])
    return _HELD[native(one)][2]
