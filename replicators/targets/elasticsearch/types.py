"""How documents hold neutral types, and how an index searches them. `docs/elasticsearch.md` has the
table."""

from __future__ import annotations

from typing import Any

from replicators.connectors.model.schema import TableSchema
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
LONGEST_KEYWORD = 8191
"""Characters of a text that are sorted and matched as a whole. A longer text is only searched by
its words: an index takes at most 32766 bytes."""
KEYWORD = {"type": "keyword", "ignore_above": LONGEST_KEYWORD}
DOUBLE_DIGITS = 15
"""Digits that a double has for sure."""


def fit(kind: LogicalType) -> Fit:  # noqa: C901 - one line for each type
    """The field's type for a neutral type. The document always has the whole value."""
    match kind:
        case Boolean():
            return Fit(EXACT, "boolean")
        case Int(bits=64, signed=False):
            return Fit(WIDENED, "keyword", "numbers beyond 2^63 are matched and sorted as text")
        case Int():
            return Fit(EXACT, "long")
        case Decimal(precision=precision) if precision <= DOUBLE_DIGITS:
            return Fit(EXACT, "double")
        case Decimal():
            rounded = "the document has all digits; searches and sorting round to 15 of them"
            return Fit(WIDENED, "double", rounded)
        case Float():
            return Fit(
                WIDENED, "double", "a document with NaN or Infinity is refused and kept aside"
            )
        case String():
            return Fit(EXACT, "text, with keyword")
        case Bytes():
            return Fit(WIDENED, "binary", "in base64; not searched")
        case Date():
            return Fit(EXACT, "date")
        case Timestamp():
            milliseconds = "the document has microseconds; searches see milliseconds"
            return Fit(WIDENED, "date", milliseconds)
        case Time() | Uuid() | Enum():
            return Fit(WIDENED, "keyword", "kept as text")
        case Json():
            return Fit(WIDENED, "text or object", "as the target's settings say")
        case Array(of=of):
            inner = fit(of)
            return Fit(inner.kind, f"array of {inner.native}", inner.reason)
        case Unsupported(native=native):
            return Fit(FitKind.UNSUPPORTED, "", f"type {native} is not known")
    raise ValueError(f"no fit for {kind}")


def field(kind: LogicalType, *, json_objects: bool) -> dict[str, Any]:  # noqa: C901 - as above
    """The mapping of a field."""
    match kind:
        case Boolean():
            return {"type": "boolean"}
        case Int(bits=64, signed=False) | Time() | Uuid() | Enum():
            return dict(KEYWORD)
        case Int():
            return {"type": "long"}
        case Decimal() | Float():
            return {"type": "double"}
        case Bytes():
            return {"type": "binary"}
        case Date():
            return {"type": "date", "format": "strict_date"}
        case Timestamp():
            return {"type": "date", "format": "strict_date_optional_time"}
        case Json() if json_objects:
            return {"type": "object", "dynamic": True}
        case Json():
            return {"type": "keyword", "index": False, "doc_values": False}
        case Array(of=of):
            return field(of, json_objects=json_objects)
    return {"type": "text", "fields": {"keyword": dict(KEYWORD)}}


def fields(schema: TableSchema, *, json_objects: bool) -> dict[str, Any]:
    """The mappings of a table's columns."""
    return {c.name: field(c.type, json_objects=json_objects) for c in schema.columns}
