"""Values of rows as JSON: exact, so that keys can be read back."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import TableSchema
from runners.engine.verify.report import JsonValue, Row

SHOWN = 500
"""A longer text of a shown row is cut after so many characters."""
_FIRST, _LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(value: Any) -> JsonValue:
    """A value as Arrow gives it to Python, moments as text already. Numbers with decimals and bytes
    (in hexadecimal digits) are text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _word(value)
        case bytes():
            return value.hex()
        case decimal.Decimal():
            return f"{value:f}"
        case list():
            return [to_json(v) for v in value]
    raise TypeError(f"no JSON for {type(value).__name__}")


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def rows_to_json(rows: pa.Table) -> list[Row]:
    """Each row by column name; for few rows."""
    plain = pa.table([_plain(c) for c in rows.columns], rows.column_names)
    return [{name: to_json(v) for name, v in row.items()} for row in plain.to_pylist()]


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Moments as text: ISO 8601, or with years that few programs read `@` and Arrow's number."""
    kind = values.type
    if pa.types.is_list(kind) and pa.types.is_temporal(kind.value_type):
        lists = [v and _plain(pa.chunked_array([v])).to_pylist() for v in _items(values)]
        return pa.chunked_array([pa.array(lists, pa.list_(pa.string()))])
    if not pa.types.is_temporal(kind):
        return values
    numbers = values.cast(_number(kind))
    text, odd = (
        values.cast(pa.string()),
        pc.binary_join_element_wise("@", numbers.cast(pa.string()), ""),
    )
    if pa.types.is_time(kind):
        return text
    low, high = (pa.scalar(v, pa.date32()).cast(pa.timestamp("us")) for v in (_FIRST, _LAST))
    is_date = pa.types.is_date(kind)
    ends = [
        v.cast(pa.date32()).cast(pa.int32()) if is_date else v.cast(pa.int64()) for v in (low, high)
    ]
    is_plain = pc.and_(pc.greater_equal(numbers, ends[0]), pc.less(numbers, ends[1]))
    return pc.if_else(is_plain, text, odd)


def _items(values: pa.ChunkedArray) -> list[pa.Array | None]:
    return [v.values if v.is_valid else None for v in values]


def _number(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date(kind) else pa.int64()


def shown(row: Row) -> Row:
    """A row for people: long texts and lists are cut."""
    return {name: _cut(value) for name, value in row.items()}


def _cut(value: JsonValue) -> JsonValue:
    if isinstance(value, str) and len(value) > SHOWN:
        return value[:SHOWN] + "…"
    if isinstance(value, list) and len(value) > SHOWN:
        return [*map(_cut, value[:SHOWN]), "…"]
    return list(map(_cut, value)) if isinstance(value, list) else value


def keys_from_json(schema: TableSchema, keys: Sequence[Row]) -> pa.Table:
    """The keys that `Difference.key` has, with the key's columns in their neutral types. ValueError
    or pa.ArrowInvalid for keys of another table."""
    arrow = schema.arrow_schema()
    columns = []
    for name in schema.key:
        kind = arrow.field(name).type
        try:
            columns.append(_column([key[name] for key in keys], kind))
        except KeyError as err:
            raise ValueError(f"a key has no column {name}") from err
    return pa.table(columns, schema=pa.schema([arrow.field(n) for n in schema.key]))


def _column(values: list[JsonValue], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return pa.array([v if v is None else bytes.fromhex(str(v)) for v in values], kind)
    if pa.types.is_temporal(kind):
        return pa.array([_moment(v, kind) for v in values], _number(kind)).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([v if v is None else str(v) for v in values], pa.string()).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([_WORDS.get(v, v) if isinstance(v, str) else v for v in values], kind)
    if pa.types.is_list(kind):
        items = [None if v is None else _column(v, kind.value_type).to_pylist() for v in values]  # type: ignore[arg-type]
        return pa.array(items, kind)
    return pa.array(values, kind)


def _moment(value: JsonValue, kind: pa.DataType) -> int | None:
    """Arrow's number for a moment's text."""
    if value is None:
        return None
    text = str(value)
    if text.startswith("@"):
        return int(text[1:])
    if pa.types.is_time(kind):
        text = f"1970-01-01 {text}"
    wanted = (
        pa.date32() if pa.types.is_date(kind) else pa.timestamp("us", tz=getattr(kind, "tz", None))
    )
    return int(pa.scalar(text).cast(wanted).cast(_number(kind)).as_py())
