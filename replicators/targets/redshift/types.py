"""Redshift's types for neutral types, and how COPY loads them from Parquet. Asks no server."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.fits import Rule, TypeTable, as_text, integers, widened
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Decimal, Float, arrow_type
from replicators.connectors.target import Fit, FitKind

LONGEST_TEXT = 65535
"""Most bytes of a text in a table, and of a value that is loaded as text."""
TEXT, BYTES = f"VARCHAR({LONGEST_TEXT})", "VARBYTE(64000)"
MOST_SCALE = 37
_DOCUMENT = (
    "kept as SUPER: the order of keys, blanks and zeros at the end of numbers may not be kept"
)
_LIST = "kept as a JSON list in a SUPER"


def _decimal(kind: Decimal) -> Rule:
    return as_text(TEXT) if kind.scale > MOST_SCALE else f"DECIMAL({kind.precision},{kind.scale})"


def _array(kind: Array, items: Fit) -> Fit:
    if isinstance(kind.of, Float):
        return Fit(FitKind.LOSSY, "SUPER", f"{_LIST}, where -0.0 is 0")
    return widened("SUPER", _LIST)


TYPES = TypeTable(
    boolean="BOOLEAN",
    integer=integers(
        {16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"},
        {8: "SMALLINT", 16: "INTEGER", 32: "BIGINT", 64: widened("DECIMAL(20,0)")},
    ),
    decimal=_decimal,
    floats={32: "REAL", 64: "DOUBLE PRECISION"},
    text=TEXT,
    binary=BYTES,
    date="DATE",
    time="TIME",
    timestamp="TIMESTAMP",
    moment="TIMESTAMPTZ",
    json=Fit(FitKind.LOSSY, "SUPER", _DOCUMENT),
    uuid=as_text(TEXT),
    enum=as_text(TEXT),
    array=_array,
)
fit, native = TYPES.fit, TYPES.native


def arrow(column: Column) -> pa.DataType:
    """The Arrow type in which values are loaded: text for a number that is kept as text."""
    return pa.string() if native(column) == TEXT else arrow_type(column.type)


_SHOWN = {"character varying": "VARCHAR", "numeric": "DECIMAL", "binary varying": "VARBYTE",
          "time without time zone": "TIME", "timestamp without time zone": "TIMESTAMP",
          "timestamp with time zone": "TIMESTAMPTZ"}  # fmt: skip


def shown(text: str) -> str:
    """A type as the catalog has it, spelled like `native`."""
    head, _, tail = text.partition("(")
    found = _SHOWN.get(head, head.upper())
    if found == "VARBYTE":
        return BYTES
    return f"{found}({tail}" if tail else found


LOADED = {
    "TIMESTAMPTZ": ("TIMESTAMP", "{} AT TIME ZONE 'UTC'"),
    "TIME": ("VARCHAR(20)", "CAST({} AS TIME)"),
    "SUPER": (TEXT, "JSON_PARSE({})"),
    BYTES: (TEXT, "FROM_HEX({})"),
}
"""The types that COPY does not read from Parquet: the type in which they are loaded first, and the
expression that makes the value of it. The others are loaded as they are."""


def is_wider(old: str, new: str) -> bool:
    """No type grows in place: ALTER COLUMN can't be a part of a transaction, and takes texts
    only."""
    return False
