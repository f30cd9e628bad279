"""What paper makes of neutral types."""

from __future__ import annotations

from replicators.connectors.model.types import Int, LogicalType, String, Timestamp, Unsupported
from replicators.connectors.target import Fit, FitKind


def fit(kind: LogicalType) -> Fit:
    """Numbers and words are written as they are, times by the minute; nothing else can be
    written."""
    match kind:
        case Int():
            return Fit(FitKind.EXACT, "digits")
        case String():
            return Fit(FitKind.WIDENED, "handwriting")
        case Timestamp():
            return Fit(FitKind.LOSSY, "handwriting", "the seconds are smudged")
        case Unsupported():
            return Fit(FitKind.UNSUPPORTED, "", "it cannot be read")
    return Fit(FitKind.UNSUPPORTED, "", "nobody can write it")
