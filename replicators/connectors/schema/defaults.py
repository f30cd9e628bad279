"""A column's default for rows that existed before the column: a source's text as a value. Pure."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal as PyDecimal
from decimal import InvalidOperation
from typing import Any

from replicators.connectors.model.types import (
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
    Uuid,
)

_BOOLEANS = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


def value_of(kind: LogicalType, text: str) -> Any:  # noqa: C901 - one line for each type
    """The value in Python's form. ValueError for a text that has no exact value in Python
    (infinity, arrays, times before year 1): then only a fresh copy gives old rows the source's
    value."""
    match kind:
        case Boolean():
            if text.lower() not in _BOOLEANS:
                raise ValueError(text)
            return _BOOLEANS[text.lower()]
        case Int():
            return int(text)
        case Decimal(precision=precision, scale=scale):
            return _decimal(text, precision, scale)
        case Float():
            return float(text)
        case String() | Json() | Uuid() | Enum():
            return text
        case Bytes() if text.startswith("\\x"):
            return bytes.fromhex(text[2:])
        case Date():
            return date.fromisoformat(text)
        case Time():
            return time.fromisoformat(text)
        case Timestamp(zone=zone):
            found = datetime.fromisoformat(text)
            if (found.tzinfo is not None) is not zone:
                raise ValueError(text)
            return found
    raise ValueError(f"no default of {kind}")


def _decimal(text: str, precision: int, scale: int) -> PyDecimal:
    try:
        found = PyDecimal(text)
    except InvalidOperation as err:
        raise ValueError(text) from err
    if not found.is_finite() or abs(found) >= PyDecimal(10) ** (precision - scale):
        raise ValueError(text)
    return found
