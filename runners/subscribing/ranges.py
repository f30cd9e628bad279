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


def parse_ranges(text: str) -> list[list[str | None]]:
    """Ranges as people write them: `1000..2000, 5000..`, the second value not included. ValueError
    says what is wrong."""
    found: list[list[str | None]] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        low, dots, high = (p.strip() for p in part.partition(".."))
        if not dots or ".." in high or not (low or high):
            raise ValueError(f"`{part[:60]}` is no range: write from..to, such as 1000..2000")
        found.append([low or None, high or None])
    return found


def ranges_shown(ranges: Sequence[Sequence[Any]]) -> str:
    """Ranges as `parse_ranges` reads them."""
    ends = [["" if bound is None else str(bound) for bound in r] for r in ranges]
    return ", ".join(f"{low}..{high}" for low, high in ends)


def check_ranges(ranges: Sequence[Sequence[Any]], kind: pa.DataType) -> None:
    """ValueError where a value does not fit the key's type, or a range has no value in it."""
    for low, high in ranges:
        ends = [None if bound is None else bound_of(bound, kind) for bound in (low, high)]
        if None not in ends and pc.greater_equal(*ends).as_py():
            raise ValueError(f"{ranges_shown([(low, high)])} has no value in it")
