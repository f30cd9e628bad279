"""How neutral types look in JSON lines and Arrow. Neither loses anything."""

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
    arrow_type,
)
from replicators.connectors.target import Fit, FitKind

_JSON: dict[type, str] = {
    Boolean: "true or false",
    Int: "number",
    Decimal: "string",
    Float: "number, or the string NaN, Infinity, -Infinity",
    String: "string",
    Bytes: "string in base64",
    Date: "string",
    Time: "string",
    Timestamp: "string",
}
_AS_TEXT = (Json, Uuid, Enum)


def fit(kind: LogicalType) -> Fit:
    """The types of a value, as `Arrow / JSON`."""
    if isinstance(kind, Unsupported):
        return Fit(FitKind.UNSUPPORTED, "", f"type {kind.native} is not known")
    if isinstance(kind, Array):
        inner = fit(kind.of)
        if inner.kind is FitKind.UNSUPPORTED:
            return inner
        arrow, _, json = inner.native.partition(" / ")
        return Fit(inner.kind, f"list of {arrow} / array of {json}", inner.reason)
    if isinstance(kind, _AS_TEXT):
        return Fit(FitKind.WIDENED, "string / string", "kept as text")
    return Fit(FitKind.EXACT, f"{arrow_type(kind)} / {_JSON[type(kind)]}")
