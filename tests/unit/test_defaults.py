"""What old rows have in a column that came later, read from the source's text."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from typing import Any

import pytest

from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
)
from replicators.connectors.schema.defaults import value_of


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Boolean(), "t", True),
        (Boolean(), "f", False),
        (Int(32), "-7", -7),
        (Decimal(9, 2), "1.50", PyDecimal("1.50")),
        (Float(64), "-Infinity", float("-inf")),
        (String(), "it's {", "it's {"),
        (Json(), '{"a": 1}', '{"a": 1}'),
        (Bytes(), "\\x00ff", b"\x00\xff"),
        (Date(), "2024-02-29", date(2024, 2, 29)),
        (Time(), "01:02:03.5", time(1, 2, 3, 500_000)),
        (
            Timestamp(6, True),
            "2024-01-01 00:00:00.5+00",
            datetime(2024, 1, 1, 0, 0, 0, 500_000, UTC),
        ),
        (Timestamp(6, False), "2024-01-01 00:00:00", datetime(2024, 1, 1)),  # noqa: DTZ001
    ],
)
def test_a_text_becomes_the_value(kind: LogicalType, text: str, value: Any) -> None:
    """Guards `defaults.value_of` (CORRECTNESS 21): old rows of an added column are filled with
    this, and no log would ever correct it."""
    assert value_of(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Boolean(), "maybe"),
        (Decimal(9, 2), "NaN"),
        (Decimal(3, 2), "10"),
        (Date(), "infinity"),
        (Date(), "0044-03-15 BC"),
        (Timestamp(6, True), "infinity"),
        (Timestamp(6, True), "2024-01-01 00:00:00"),
        (Time(), "24:00:00"),
        (Array(Int(32)), "{1,2}"),
        (Bytes(), "no hex"),
    ],
)
def test_what_has_no_exact_value_is_refused(kind: LogicalType, text: str) -> None:
    """The table is copied afresh then; a value near it would be wrong in every old row."""
    with pytest.raises(ValueError):  # noqa: PT011 - any
        value_of(kind, text)
