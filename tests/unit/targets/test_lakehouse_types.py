"""Every neutral type has its place in a lakehouse table, and what is lost is said."""

from __future__ import annotations

import pytest

from assessments.report import Support, column_report
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
from replicators.targets.lakehouse.types import fit


@pytest.mark.parametrize(
    ("kind", "native", "how"),
    [
        (Boolean(), "BOOLEAN", FitKind.EXACT),
        (Int(16), "INT", FitKind.WIDENED),
        (Int(32), "INT", FitKind.EXACT),
        (Int(64), "BIGINT", FitKind.EXACT),
        (Int(64, signed=False), "DECIMAL(20,0)", FitKind.WIDENED),
        (Decimal(38, 10), "DECIMAL(38,10)", FitKind.EXACT),
        (Float(32), "FLOAT", FitKind.EXACT),
        (Float(64), "DOUBLE", FitKind.EXACT),
        (String(10), "STRING", FitKind.EXACT),
        (Bytes(), "BINARY", FitKind.EXACT),
        (Date(), "DATE", FitKind.EXACT),
        (Time(), "STRING", FitKind.WIDENED),
        (Timestamp(zone=True), "TIMESTAMP", FitKind.EXACT),
        (Timestamp(), "TIMESTAMP_NTZ", FitKind.EXACT),
        (Json(), "STRING", FitKind.WIDENED),
        (Uuid(), "STRING", FitKind.WIDENED),
        (Enum(("a",)), "STRING", FitKind.WIDENED),
        (Array(Decimal(5, 1)), "ARRAY<DECIMAL(5,1)>", FitKind.EXACT),
        (Unsupported("point"), "", FitKind.UNSUPPORTED),
        (Array(Unsupported("point")), "", FitKind.UNSUPPORTED),
    ],
)
def test_a_type_has_its_place(kind: LogicalType, native: str, how: FitKind) -> None:
    """Guards the table `types.fit`: a narrower type would cut or round values, and what is kept as
    text must say so."""
    fitted = fit(kind)
    assert (fitted.native, fitted.kind) == (native, how)
    assert bool(fitted.reason) or how in {FitKind.EXACT, FitKind.WIDENED}


def test_json_is_kept_whole_as_text() -> None:
    """The report says *as text*, and counts the column as copied whole."""
    told = column_report(Column("data", Json(), "jsonb"), fit_column, {})
    assert (told.support, told.target_type, told.reason) == (Support.YES, "STRING", "kept as text")


def fit_column(column: Column) -> Fit:
    """How a column fits."""
    return fit(column.type)
