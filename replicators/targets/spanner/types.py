"""How neutral types fit Spanner's (GoogleSQL), and what holds their values in DuckDB and Arrow.
Asks no server."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.fits import (
    Rule,
    TypeTable,
    as_text,
    integers,
    same_items,
    widened,
)
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)

TEXT, SCALE, WHOLE = "STRING(MAX)", 9, 29
_UTC = "kept as the instant that the wall clock shows in UTC: Spanner has no type without a zone"
_JSON = (
    "kept as text: Spanner's JSON refuses numbers that it would round, and sorts keys (PARSE_JSON)"
)
_MOMENT = pa.timestamp("us", tz="UTC")
_HELD: dict[str, tuple[LogicalType, str, pa.DataType]] = {
    "BOOL": (Boolean(), "BOOLEAN", pa.bool_()),
    "INT64": (Int(64), "BIGINT", pa.int64()),
    "FLOAT32": (Float(32), "FLOAT", pa.float32()),
    "FLOAT64": (Float(64), "DOUBLE", pa.float64()),
    "NUMERIC": (Decimal(38, SCALE), f"DECIMAL(38,{SCALE})", pa.decimal128(38, SCALE)),
    TEXT: (String(), "VARCHAR", pa.string()),
    "BYTES(MAX)": (Bytes(), "BLOB", pa.binary()),
    "DATE": (Date(), "DATE", pa.date32()),
    "TIMESTAMP": (Timestamp(6, zone=True), "TIMESTAMP WITH TIME ZONE", _MOMENT),
}
"""Each type of ours: a neutral type that has it, and how an image and Arrow hold it."""


def _decimal(kind: Decimal) -> Rule:
    if kind.scale > SCALE or kind.precision - kind.scale > WHOLE:
        note = f"kept as text: NUMERIC has {WHOLE} digits before the point, {SCALE} behind"
        return as_text(TEXT, note)
    return "NUMERIC"


_SMALL = {bits: widened("INT64") for bits in (8, 16, 24, 32)}
TYPES = TypeTable(
    boolean="BOOL",
    integer=integers({**_SMALL, 64: "INT64"}, {**_SMALL, 64: widened("NUMERIC")}),
    decimal=_decimal,
    floats={32: "FLOAT32", 64: "FLOAT64"},
    text=TEXT,
    binary="BYTES(MAX)",
    date="DATE",
    time=as_text(TEXT),
    timestamp=widened("TIMESTAMP", _UTC),
    moment="TIMESTAMP",
    json=as_text(TEXT, _JSON),
    uuid=as_text(TEXT),
    enum=as_text(TEXT),
    array=same_items,
)
fit, native = TYPES.fit, TYPES.native


def column(name: str, shown: str) -> Column:
    """A column of one of Spanner's types; one that is not ours is read as text."""
    if shown.startswith("ARRAY<"):
        return Column(name, Array(column("", shown[6:-1]).type), "")
    return Column(name, _HELD.get(shown, _HELD[TEXT])[0], "")


def image_type(one: Column) -> str:
    """The DuckDB type for a column."""
    if isinstance(one.type, Array):
        return f"{_HELD[fit(one.type.of).native][1]}[]"
    return _HELD[native(one)][1]


NATIVES = {image: shown for shown, (_, image, _) in _HELD.items()}
NATIVES |= {f"{image}[]": f"ARRAY<{shown}>" for shown, (_, image, _) in _HELD.items()}
"""Spanner's types by the DuckDB types."""


def arrow(one: Column) -> pa.DataType:
    """The Arrow type in which values are written and read."""
    if isinstance(one.type, Array):
        return pa.list_(_HELD[fit(one.type.of).native][2])
    return _HELD[native(one)][2]
