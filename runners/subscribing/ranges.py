"""Which changes lie in a subscriber's key ranges. Works by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema


def in_ranges(
    batch: pa.RecordBatch, schema: TableSchema, ranges: Sequence[Sequence[Any]]
) -> pa.RecordBatch:
    """The rows whose first key column is in one of the ranges, before or after the change; and
    every TRUNCATE. ValueError where a range's value does not fit the column."""
    if not ranges or not schema.key:
        return batch
    name = schema.key[0]
    keep = pc.equal(batch.column("_op"), int(Op.TRUNCATE))
    columns = [batch.column(name)]
    if "_before" in batch.schema.names:
        columns.append(pc.struct_field(batch.column("_before"), [name]))
    for column in columns:
        for low, high in ranges:
            keep = pc.or_(keep, _between(column, low, high))
    return batch.filter(keep)


def _between(column: pa.Array, low: Any, high: Any) -> pa.Array:
    found = column.is_valid()
    for bound, compare in ((low, pc.greater_equal), (high, pc.less)):
        if bound is not None:
            value = bound_of(bound, column.type)
            found = pc.and_(found, pc.fill_null(compare(column, value), False))
    return found


def bound_of(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A range's value in the column's type; ValueError where it does not fit."""
    try:
        if isinstance(value, str) and not pa.types.is_string(kind):
            return pa.scalar(value).cast(kind)
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, OverflowError) as err:
        raise ValueError(f"must be a value of the key's type, {kind}") from err
