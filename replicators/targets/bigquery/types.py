"""How neutral types fit BigQuery's. Uses no driver."""

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

NUMERIC_SCALE, NUMERIC_WHOLE = 9, 29
"""The digits behind and before the point that NUMERIC holds. BIGNUMERIC holds 38 and 38."""
_AS_TEXT = "kept as text"
_NO_NULLS = (
    "BigQuery's arrays hold no NULL: elements that are NULL are left out, and an array that is "
    "NULL becomes an empty one"
)
_CLUSTERED = frozenset({"BIGNUMERIC", "BOOL", "DATE", "DATETIME", "INT64", "NUMERIC", "STRING",
                        "TIMESTAMP"})  # fmt: skip
_NUMBER = re.compile(r"(?P<name>big)?numeric(?:\((?P<p>\d+)(?:,\s*(?P<s>\d+))?\))?")


def _integer(kind: Int) -> Fit:
    if kind.bits > 64:
        return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {kind.bits} bits")
    if kind.bits == 64:
        return (
            Fit(FitKind.EXACT, "INT64") if kind.signed else Fit(FitKind.WIDENED, "NUMERIC(20, 0)")
        )
    return Fit(FitKind.WIDENED, "INT64")


def _decimal(kind: Decimal) -> Fit:
    is_small = kind.scale <= NUMERIC_SCALE and kind.precision - kind.scale <= NUMERIC_WHOLE
    name = "NUMERIC" if is_small else "BIGNUMERIC"
    return Fit(FitKind.EXACT, f"{name}({kind.precision}, {kind.scale})")


def _array(kind: Array) -> Fit:
    inner = fit(kind.of)
    if inner.kind is FitKind.UNSUPPORTED:
        return inner
    return Fit(FitKind.LOSSY, f"ARRAY<{inner.native}>", _NO_NULLS)


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """BigQuery's type for a neutral type, and how its values change. Nothing becomes text without a
    note."""
    match kind:
        case Boolean():
            return Fit(FitKind.EXACT, "BOOL")
        case Int():
            return _integer(kind)
        case Decimal():
            return _decimal(kind)
        case Float(bits=bits):
            return Fit(FitKind.EXACT if bits == 64 else FitKind.WIDENED, "FLOAT64")
        case String():
            return Fit(FitKind.EXACT, "STRING")
        case Bytes():
            return Fit(FitKind.EXACT, "BYTES")
        case Date():
            return Fit(FitKind.EXACT, "DATE")
        case Timestamp(zone=zone):
            return Fit(FitKind.EXACT, "TIMESTAMP" if zone else "DATETIME")
        case Time():
            return Fit(FitKind.EXACT, "TIME")
        case Json():
            note = "kept as text: BigQuery's JSON would round numbers and sort keys (PARSE_JSON)"
            return Fit(FitKind.WIDENED, "STRING", note)
        case Uuid() | Enum():
            return Fit(FitKind.WIDENED, "STRING", _AS_TEXT)
        case Array():
            return _array(kind)
        case Unsupported(native=native):
            return Fit(FitKind.UNSUPPORTED, "", f"type {native} is not known")
    raise ValueError(f"no fit for {kind}")


def native(column: Column) -> str:
    """The text of a column's type, as CREATE TABLE has it."""
    return fit(column.type).native


def arrow(column: Column) -> pa.DataType:
    """The Arrow type in which a load job takes the column's values: the neutral type's own."""
    return arrow_type(column.type)


def shown(name: str, mode: str, precision: int | None, scale: int | None) -> str:
    """A type as the service describes a column, spelled like `native`. The service answers with the
    older names of some types."""
    older = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
    text = older.get(name, name)
    if text in {"NUMERIC", "BIGNUMERIC"} and precision is not None:
        text = f"{text}({precision}, {scale or 0})"
    return f"ARRAY<{text}>" if mode == "REPEATED" else text


def is_wider(old: str, new: str) -> bool:
    """Whether ALTER COLUMN takes a column from one lower-case type to another without loss."""
    before, after = _digits(old), _digits(new)
    if before is None or after is None:
        return False
    return all(b <= a for b, a in zip(before, after, strict=True))


def _digits(text: str) -> tuple[int, int, int] | None:
    """The rank of a number's type, and its digits before and behind the point. INT64 becomes any
    decimal that has 19 digits before the point."""
    if text == "int64":
        return 0, 19, 0
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    rank = 2 if found["name"] else 1
    if found["p"] is None:
        return (rank, 38, 38) if found["name"] else (rank, NUMERIC_WHOLE, NUMERIC_SCALE)
    precision, scale = int(found["p"]), int(found["s"] or 0)
    return rank, precision - scale, scale


def can_cluster(column: Column) -> bool:
    """Whether a table can be clustered by the column."""
    return native(column).partition("(")[0] in _CLUSTERED


def can_partition(column: Column) -> bool:
    """Whether a table can be partitioned by the column, in units of time."""
    return isinstance(column.type, Date | Timestamp)
