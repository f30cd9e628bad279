"""Redshift's types for neutral types, and how COPY loads them from Parquet. Asks no server."""

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
    arrow_type,
)
from replicators.connectors.target import Fit, FitKind

LONGEST_TEXT = 65535
"""Most bytes of a text in a table, and of a value that is loaded as text."""
TEXT, BYTES = f"VARCHAR({LONGEST_TEXT})", "VARBYTE(64000)"
MOST_SCALE = 37
_DOCUMENT = (
    "kept as SUPER: the order of keys, blanks and zeros at the end of numbers may not be kept"
)
_LIST = "kept as a JSON list in a SUPER"
_INTEGERS = {16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """The type for a neutral type, and how its values change."""
    match kind:
        case Boolean():
            return Fit(FitKind.EXACT, "BOOLEAN")
        case Int(bits=64, signed=False):
            return Fit(FitKind.WIDENED, "DECIMAL(20,0)")
        case Int(bits=bits, signed=signed) if (bits if signed else bits * 2) in _INTEGERS:
            return Fit(FitKind.EXACT, _INTEGERS[bits if signed else bits * 2])
        case Int(bits=bits):
            return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {bits} bits")
        case Decimal(precision=precision, scale=scale):
            if scale > MOST_SCALE:
                return Fit(FitKind.WIDENED, TEXT, "kept as text")
            return Fit(FitKind.EXACT, f"DECIMAL({precision},{scale})")
        case Float(bits=bits):
            return Fit(FitKind.EXACT, "DOUBLE PRECISION" if bits == 64 else "REAL")
        case String():
            return Fit(FitKind.EXACT, TEXT)
        case Uuid() | Enum():
            return Fit(FitKind.WIDENED, TEXT, "kept as text")
        case Bytes():
            return Fit(FitKind.EXACT, BYTES)
        case Date():
            return Fit(FitKind.EXACT, "DATE")
        case Time():
            return Fit(FitKind.EXACT, "TIME")
        case Timestamp(zone=zone):
            return Fit(FitKind.EXACT, "TIMESTAMPTZ" if zone else "TIMESTAMP")
        case Json():
            return Fit(FitKind.LOSSY, "SUPER", _DOCUMENT)
        case Array(of=of):
            inner = fit(of)
            if inner.kind is FitKind.UNSUPPORTED:
                return inner
            if isinstance(of, Float):
                return Fit(FitKind.LOSSY, "SUPER", f"{_LIST}, where -0.0 is 0")
            return Fit(FitKind.WIDENED, "SUPER", _LIST)
        case Unsupported(native=name):
            return Fit(FitKind.UNSUPPORTED, "", f"type {name} is not known")
    raise ValueError(f"no fit for {kind}")


def native(column: Column) -> str:
    """The text of a column's type, as CREATE TABLE has it."""
    return fit(column.type).native


def arrow(column: Column) -> pa.DataType:
    """The Arrow type in which values are loaded: text for a number that is kept as text."""
    return pa.string() if native(column) == TEXT else arrow_type(column.type)


_SHOWN = {"character varying": "VARCHAR", "numeric": "DECIMAL", "binary varying": "VARBYTE",
          "time without time zone": "TIME", "timestamp without time zone": "TIMESTAMP",
          "timestamp with time zone": "TIMESTAMPTZ"}  # fmt: skip


def shown(text: str) -> str:
    """A type as the catalog has it, spelled like `native`."""
    head, _, tail = text.partition("(")
    found = _SHOWN.get(head, head.upper())
    if found == "VARBYTE":
        return BYTES
    return f"{found}({tail}" if tail else found


LOADED = {
    "TIMESTAMPTZ": ("TIMESTAMP", "{} AT TIME ZONE 'UTC'"),
    "TIME": ("VARCHAR(20)", "CAST({} AS TIME)"),
    "SUPER": (TEXT, "JSON_PARSE({})"),
    BYTES: (TEXT, "FROM_HEX({})"),
}
"""The types that COPY does not read from Parquet: the type in which they are loaded first, and the
expression that makes the value of it. The others are loaded as they are."""


def is_wider(old: str, new: str) -> bool:
    """No type grows in place: ALTER COLUMN can't be a part of a transaction, and takes texts
    only."""
    return False
