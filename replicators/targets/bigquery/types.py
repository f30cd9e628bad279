"""How neutral types fit BigQuery's. Uses no driver."""

from __future__ import annotations

import re

import pyarrow as pa

from replicators.connectors.fits import TypeTable, as_text, integers, widened
from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Array, Date, Decimal, Timestamp, arrow_type
from replicators.connectors.target import Fit, FitKind

NUMERIC_SCALE, NUMERIC_WHOLE = 9, 29
"""The digits behind and before the point that NUMERIC holds. BIGNUMERIC holds 38 and 38."""
_NO_NULLS = (
    "BigQuery's arrays hold no NULL: elements that are NULL are left out, and an array that is "
    "NULL becomes an empty one"
)
_CLUSTERED = frozenset({"BIGNUMERIC", "BOOL", "DATE", "DATETIME", "INT64", "NUMERIC", "STRING",
                        "TIMESTAMP"})  # fmt: skip
_NUMBER = re.compile(r"(?P<name>big)?numeric(?:\((?P<p>\d+)(?:,\s*(?P<s>\d+))?\))?")


def _decimal(kind: Decimal) -> str:
    is_small = kind.scale <= NUMERIC_SCALE and kind.precision - kind.scale <= NUMERIC_WHOLE
    return f"{'NUMERIC' if is_small else 'BIGNUMERIC'}({kind.precision}, {kind.scale})"


def _array(kind: Array, items: Fit) -> Fit:
    return Fit(FitKind.LOSSY, f"ARRAY<{items.native}>", _NO_NULLS)


_SMALL = {bits: widened("INT64") for bits in (8, 16, 24, 32)}
TYPES = TypeTable(
    boolean="BOOL",
    integer=integers({**_SMALL, 64: "INT64"}, {**_SMALL, 64: widened("NUMERIC(20, 0)")}),
    decimal=_decimal,
    floats={32: widened("FLOAT64"), 64: "FLOAT64"},
    text="STRING",
    binary="BYTES",
    date="DATE",
    time="TIME",
    timestamp="DATETIME",
    moment="TIMESTAMP",
    json=as_text(
        "STRING", "kept as text: BigQuery's JSON would round numbers and sort keys (PARSE_JSON)"
    ),
    uuid=as_text("STRING"),
    enum=as_text("STRING"),
    array=_array,
)
"""Nothing becomes text without a note."""
fit, native = TYPES.fit, TYPES.native


def arrow(column: Column) -> pa.DataType:
    """The Arrow type in which a load job takes the column's values: the neutral type's own."""
    return arrow_type(column.type)


def shown(name: str, mode: str, precision: int | None, scale: int | None) -> str:
    """A type as the service describes a column, spelled like `native`. The service answers with the
    older names of some types."""
    older = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
    text = older.get(name, name)
    if text in {"NUMERIC", "BIGNUMERIC"} and precision is not None:
        text = f"{text}({precision}, {scale or 0})"
    return f"ARRAY<{text}>" if mode == "REPEATED" else text


def is_wider(old: str, new: str) -> bool:
    """Whether ALTER COLUMN takes a column from one lower-case type to another without loss."""
    before, after = _digits(old), _digits(new)
    if before is None or after is None:
        return False
    return all(b <= a for b, a in zip(before, after, strict=True))


def _digits(text: str) -> tuple[int, int, int] | None:
    """The rank of a number's type, and its digits before and behind the point. INT64 becomes any
    decimal that has 19 digits before the point."""
    if text == "int64":
        return 0, 19, 0
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    rank = 2 if found["name"] else 1
    if found["p"] is None:
        return (rank, 38, 38) if found["name"] else (rank, NUMERIC_WHOLE, NUMERIC_SCALE)
    precision, scale = int(found["p"]), int(found["s"] or 0)
    return rank, precision - scale, scale


def can_cluster(column: Column) -> bool:
    """Whether a table can be clustered by the column."""
    return native(column).partition("(")[0] in _CLUSTERED


def can_partition(column: Column) -> bool:
    """Whether a table can be partitioned by the column, in units of time."""
    return isinstance(column.type, Date | Timestamp)
