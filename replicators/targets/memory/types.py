"""The in-memory target's types for neutral types."""

from __future__ import annotations

from replicators.connectors.model.types import Json, LogicalType, Unsupported
from replicators.connectors.target import Fit, FitKind


def fit(kind: LogicalType) -> Fit:
    """Every type fits except JSON, which loses its type."""
    if isinstance(kind, Unsupported):
        return Fit(FitKind.UNSUPPORTED, "", "it cannot be read")
    if isinstance(kind, Json):
        return Fit(FitKind.LOSSY, "text", "it becomes text")
    return Fit(FitKind.EXACT, type(kind).__name__.lower())
