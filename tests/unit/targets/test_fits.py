"""The table by which targets say what they have for each neutral type."""

from __future__ import annotations

import pytest

from replicators.connectors import registry
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
from replicators.connectors.target import FitKind

TABLES = ("bigquery", "lakehouse", "mysql", "postgresql", "redshift", "snowflake", "spanner")
KINDS: tuple[LogicalType, ...] = (
    Boolean(), Int(16), Int(32), Int(64), Int(64, signed=False), Decimal(12, 2), Float(32),
    Float(64), String(), Bytes(), Date(), Time(), Timestamp(), Timestamp(zone=True), Json(), Uuid(),
    Enum(("a",)),
)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_target_has_a_type_for_all_but_what_can_not_be_copied(name: str) -> None:
    """Guards `TypeTable`: a type that is missing stops its table, and a list of a type that can't
    be copied can't be copied either."""
    fit = registry.targets()[name].fit
    for kind in KINDS:
        assert fit(kind).native, kind
        assert fit(Array(kind)).native, kind
    for kind in (Int(128), Unsupported("point")):
        assert fit(kind) == fit(Array(kind))
        assert (fit(kind).kind, fit(kind).native) == (FitKind.UNSUPPORTED, "")
    assert fit(Unsupported("point")).reason == "type point is not known"
