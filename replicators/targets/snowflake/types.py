"""Snowflake's types for neutral types. Asks no server. Text compares byte by byte there."""

from __future__ import annotations

import re

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

_DOCUMENT = (
    "kept as VARIANT: the order of keys, blanks and zeros at the end of numbers are not kept, and "
    "numbers of more than 38 digits are rounded"
)
_LIST = "kept as a JSON list in a VARIANT"
_DIGITS = {16: 5, 32: 10, 64: 19}
MOST_SCALE = 37


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """The type for a neutral type, and how its values change."""
    match kind:
        case Boolean():
            return Fit(FitKind.EXACT, "BOOLEAN")
        case Int(bits=bits, signed=signed):
            if bits not in _DIGITS:
                return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {bits} bits")
            return Fit(FitKind.EXACT, f"NUMBER({_DIGITS[bits] + (not signed)},0)")
        case Decimal(precision=precision, scale=scale):
            if scale > MOST_SCALE:
                return Fit(FitKind.WIDENED, "TEXT", "kept as text")
            return Fit(FitKind.EXACT, f"NUMBER({precision},{scale})")
        case Float(bits=bits):
            return Fit(FitKind.EXACT if bits == 64 else FitKind.WIDENED, "FLOAT")
        case String():
            return Fit(FitKind.EXACT, "TEXT")
        case Uuid() | Enum():
            return Fit(FitKind.WIDENED, "TEXT", "kept as text")
        case Bytes():
            return Fit(FitKind.EXACT, "BINARY")
        case Date():
            return Fit(FitKind.EXACT, "DATE")
        case Time():
            return Fit(FitKind.EXACT, "TIME(6)")
        case Timestamp(zone=zone):
            return Fit(FitKind.EXACT, "TIMESTAMP_TZ(6)" if zone else "TIMESTAMP_NTZ(6)")
        case Json():
            return Fit(FitKind.LOSSY, "VARIANT", _DOCUMENT)
        case Array(of=of):
            inner = fit(of)
            if inner.kind is FitKind.UNSUPPORTED:
                return inner
            if isinstance(of, Float):
                return Fit(FitKind.LOSSY, "VARIANT", f"{_LIST}, where -0.0 is 0")
            return Fit(FitKind.WIDENED, "VARIANT", _LIST)
        case Unsupported(native=name):
            return Fit(FitKind.UNSUPPORTED, "", f"type {name} is not known")
    raise ValueError(f"no fit for {kind}")


def native(column: Column) -> str:
    """The text of a column's type, as CREATE TABLE has it."""
    return fit(column.type).native


def arrow(column: Column) -> pa.DataType:
    """The Arrow type in which values are loaded: text for a number that is kept as text."""
    return pa.string() if native(column) == "TEXT" else arrow_type(column.type)


_SHOWN = {"VARCHAR": "TEXT", "TIME": "TIME(6)", "TIMESTAMP_TZ": "TIMESTAMP_TZ(6)",
          "TIMESTAMP_NTZ": "TIMESTAMP_NTZ(6)"}  # fmt: skip
_NUMBER = re.compile(r"number\((\d+),(\d+)\)")


def shown(text: str) -> str:
    """A type as DESCRIBE TABLE has it, spelled like `native`. Lengths of text depend on the
    account's age."""
    head = text.partition("(")[0]
    return text if head == "NUMBER" else _SHOWN.get(head, head)


def is_wider(old: str, new: str) -> bool:
    """Whether ALTER COLUMN takes a column from one lower-case type to another: only more digits
    before the point."""
    before, after = _NUMBER.fullmatch(old), _NUMBER.fullmatch(new)
    if before is None or after is None:
        return False
    return before[2] == after[2] and int(before[1]) <= int(after[1])
