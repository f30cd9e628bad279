"""Values as a target's reader gives them, in the neutral Arrow types; and rows chosen by key. Knows
no target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import TableSchema

_PLACE = "_replicator_place"
_DAY = "1970-01-01 "


def chosen(schema: TableSchema, columns: Sequence[str]) -> list[str]:
    """The columns to read: those asked, or all that can be copied."""
    return list(columns) or [c.name for c in schema.supported]


def neutral(schema: TableSchema, columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of these columns."""
    arrow = schema.arrow_schema()
    return pa.schema([arrow.field(n) for n in columns])


def fitted(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The rows with exactly the wanted columns and types, none of which loses anything. A time of
    day may be text (HH:MM:SS.ffffff)."""
    return pa.Table.from_arrays(
        [_fitted(rows.column(f.name), f.type) for f in wanted], schema=wanted
    )


def _fitted(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if values.type == kind:
        return values
    return pa.chunked_array([_array(chunk, kind) for chunk in values.chunks], kind)


def _array(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind) and _is_text_time(values.type, kind):
        plain = values.cast(pa.list_(pa.string()))
        items = _array(plain.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(plain), 0)
        ends = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        return pa.ListArray.from_arrays(ends.cast(pa.int32()), items, mask=plain.is_null())
    if pa.types.is_time(kind) and _is_text(values.type):
        moments = pc.binary_join_element_wise(_DAY, values.cast(pa.string()), "")
        return moments.cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return values.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_text_time(found: pa.DataType, kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
    return is_list and pa.types.is_time(kind.value_type) and _is_text(found.value_type)


def within(rows: pa.Table, name: str, lower: Any, upper: Any) -> pa.Table:
    """The rows whose value of this column is at least `lower` and less than `upper`; None: no
    limit."""
    kind = rows.schema.field(name).type
    if lower is not None:
        rows = rows.filter(pc.greater_equal(rows.column(name), scalar(lower, kind)))
    if upper is not None:
        rows = rows.filter(pc.less(rows.column(name), scalar(upper, kind)))
    return rows


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value, which may be an Arrow scalar, as a scalar of this type."""
    return value.cast(kind) if isinstance(value, pa.Scalar) else pa.scalar(value, kind)


def with_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows whose key is one of the keys. `keys` has the key's columns in the rows' types."""
    names = keys.column_names
    places = rows.select(names).append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
    found = places.join(keys, names, join_type="left semi").column(_PLACE)
    return rows.take(found.combine_chunks().sort())
