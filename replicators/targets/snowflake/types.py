"""Snowflake's types for neutral types. Asks no server. Text compares byte by byte there."""

from __future__ import annotations

import re

import pyarrow as pa

from replicators.connectors.fits import Rule, TypeTable, as_text, integers, widened
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Decimal, Float, arrow_type
from replicators.connectors.target import Fit, FitKind

_DOCUMENT = (
    "kept as VARIANT: the order of keys, blanks and zeros at the end of numbers are not kept, and "
    "numbers of more than 38 digits are rounded"
)
_LIST = "kept as a JSON list in a VARIANT"
MOST_SCALE = 37


def _decimal(kind: Decimal) -> Rule:
    if kind.scale > MOST_SCALE:
        return as_text("TEXT")
    return f"NUMBER({kind.precision},{kind.scale})"


def _array(kind: Array, items: Fit) -> Fit:
    if isinstance(kind.of, Float):
        return Fit(FitKind.LOSSY, "VARIANT", f"{_LIST}, where -0.0 is 0")
    return widened("VARIANT", _LIST)


TYPES = TypeTable(
    boolean="BOOLEAN",
    integer=integers(
        {16: "NUMBER(5,0)", 32: "NUMBER(10,0)", 64: "NUMBER(19,0)"},
        {16: "NUMBER(6,0)", 32: "NUMBER(11,0)", 64: "NUMBER(20,0)"},
    ),
    decimal=_decimal,
    floats={32: widened("FLOAT"), 64: "FLOAT"},
    text="TEXT",
    binary="BINARY",
    date="DATE",
    time="TIME(6)",
    timestamp="TIMESTAMP_NTZ(6)",
    moment="TIMESTAMP_TZ(6)",
    json=Fit(FitKind.LOSSY, "VARIANT", _DOCUMENT),
    uuid=as_text("TEXT"),
    enum=as_text("TEXT"),
    array=_array,
)
fit, native = TYPES.fit, TYPES.native


def arrow(column: Column) -> pa.DataType:
    """The Arrow type in which values are loaded: text for a number that is kept as text."""
    return pa.string() if native(column) == "TEXT" else arrow_type(column.type)


_SHOWN = {"VARCHAR": "TEXT", "TIME": "TIME(6)", "TIMESTAMP_TZ": "TIMESTAMP_TZ(6)",
          "TIMESTAMP_NTZ": "TIMESTAMP_NTZ(6)"}  # fmt: skip
_NUMBER = re.compile(r"number\((\d+),(\d+)\)")


def shown(text: str) -> str:
    """A type as DESCRIBE TABLE has it, spelled like `native`. Lengths of text depend on the
    account's age."""
    head = text.partition("(")[0]
    return text if head == "NUMBER" else _SHOWN.get(head, head)


def is_wider(old: str, new: str) -> bool:
    """Whether ALTER COLUMN takes a column from one lower-case type to another: only more digits
    before the point."""
    before, after = _NUMBER.fullmatch(old), _NUMBER.fullmatch(new)
    if before is None or after is None:
        return False
    return before[2] == after[2] and int(before[1]) <= int(after[1])
