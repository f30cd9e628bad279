"""Values of a SQL target, read as its texts."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from replicators.connectors.arrow import reading
from replicators.connectors.model.types import (
    Array,
    Bytes,
    Float,
    LogicalType,
    Time,
    Timestamp,
    arrow_type,
)


def values(texts: list[Any], kind: LogicalType) -> pa.Array:
    """A column's neutral values, from the server's texts."""
    match kind:
        case Bytes():
            return pa.array(texts, pa.binary())
        case Array(of=of):
            return _lists(texts, of)
        case Timestamp():
            return pa.array(texts, pa.string()).cast(pa.timestamp("us")).cast(arrow_type(kind))
        case Time():
            return pa.array(texts, pa.string())
        case Float():
            return pa.array(texts, pa.string()).cast(pa.float64()).cast(arrow_type(kind))
    return pa.array(texts, pa.string()).cast(arrow_type(kind))


def _lists(texts: list[str | None], of: LogicalType) -> pa.Array:
    """Lists, from JSON. `NaN` and the like are quoted there."""
    found = [None if t is None else json.loads(t, parse_float=str, parse_int=str) for t in texts]
    items = [_item(item, of) for items in found for item in items or ()]
    ends = [0]
    for some in found:
        ends.append(ends[-1] + len(some or ()))
    found_items = values(items, of)
    fitted = found_items if found_items.type == arrow_type(of) else _times(found_items)
    is_null = pa.array([some is None for some in found])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), fitted, mask=is_null)


def _item(item: Any, of: LogicalType) -> Any:
    if isinstance(item, bool):
        return "1" if item else "0"
    return bytes.fromhex(item) if isinstance(of, Bytes) and item is not None else item


def _times(texts: pa.Array) -> pa.Array:
    wanted = pa.schema([pa.field("t", pa.time64("us"))])
    return reading.fitted(pa.table({"t": texts}), wanted).column(0).combine_chunks()
