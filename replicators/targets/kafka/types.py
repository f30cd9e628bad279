"""How messages carry neutral types. Nothing is lost."""

from __future__ import annotations

from replicators.connectors.model.types import Array, Int, LogicalType, Unsupported
from replicators.connectors.target import Fit, FitKind


def fit(kind: LogicalType) -> Fit:
    """The form of a neutral type in messages."""
    match kind:
        case Unsupported(native=native):
            return Fit(FitKind.UNSUPPORTED, "", f"type {native} is not known")
        case Array(of=of):
            inner = fit(of)
            return inner if inner.kind is FitKind.UNSUPPORTED else Fit(inner.kind, "array")
        case Int(bits=bits) if bits not in {16, 32, 64}:
            return Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {bits} bits")
    return Fit(FitKind.EXACT, type(kind).__name__.lower())
