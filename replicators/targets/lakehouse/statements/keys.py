"""Shared by the statements of all modes: keys, key ranges, and unsent values. Text only."""

# ruff: noqa: S608 - SQL is made here: names go through `quote`, values through `literal`

from __future__ import annotations

from collections.abc import Sequence

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, LogicalType
from replicators.connectors.target import FoldedBatch, KeyRange
from replicators.targets.lakehouse.dialect import literal, quote, read_type, stored, text

ROW_MISSING = "replicator: row missing"


def _range(column: str, kind: LogicalType, one: KeyRange) -> str:
    low, high = literal(kind, one.low), literal(kind, one.high)
    if low == "NULL" or high == "NULL":
        return f"{column} IS NULL"
    if low == high:
        return f"{column} = {low}"
    return f"{column} BETWEEN {low} AND {high}"


def key_ranges(batch: FoldedBatch, alias: str) -> str:
    """A predicate over the first key column that is true for every key of the batch; '' if there is
    none. A small number of keys is listed: then the text of Spark's compiled program is the same
    for every merge, and Spark compiles it once."""
    schema = batch.schema
    if not (batch.ranges or batch.keys) or not schema.key:
        return ""
    column = schema.column(schema.key[0])
    if isinstance(column.type, Array):
        return ""
    name = f"{alias}.{quote(column.name)}"
    try:
        if batch.keys:
            return f"{name} IN ({', '.join(literal(column.type, k) for k in batch.keys)})"
        return f"({_ranges(name, column.type, batch.ranges)})"
    except ValueError:
        return ""


def _ranges(name: str, kind: LogicalType, ranges: Sequence[KeyRange]) -> str:
    """True if one of the ascending ranges holds. The ranges are halved again and again, so that a
    row costs a few comparisons, not two for each range."""
    if len(ranges) == 1:
        return _range(name, kind, ranges[0])
    middle = len(ranges) // 2
    left, right = ranges[:middle], ranges[middle:]
    low, high = literal(kind, right[0].low), literal(kind, left[-1].high)
    if "NULL" in (low, high):
        return " OR ".join(_range(name, kind, r) for r in ranges)
    return (
        f"{name} <= {high} AND ({_ranges(name, kind, left)}) "
        f"OR {name} >= {low} AND ({_ranges(name, kind, right)})"
    )


def key_match(schema: TableSchema, left: str, right: str) -> str:
    """Equality of keys. NULL equals NULL if a key column may be NULL."""
    parts = []
    for name in schema.key:
        sign = "<=>" if schema.column(name).nullable else "="
        parts.append(f"{left}.{quote(name)} {sign} {right}.{quote(name)}")
    return " AND ".join(parts)


def unsent_bit(batch: FoldedBatch, column: str) -> str:
    at = [c.name for c in batch.schema.columns].index(column)
    byte = f"conv(hex(substring(b.`_unsent`, {at // 8 + 1}, 1)), 16, 10)"
    return f"coalesce((CAST({byte} AS INT) & {1 << (at % 8)}) <> 0, FALSE)"


def failing(condition: str, value: str, native: str) -> str:
    return (
        f"CASE WHEN {condition} THEN CAST(raise_error({text(ROW_MISSING)}) AS {native}) ELSE "
        f"{value} END"
    )


def unsent_flag(batch: FoldedBatch, column: str) -> str:
    """The name of the flag for an unsent `column`. No column of the table has this name."""
    names = {c.name.casefold() for c in batch.schema.columns}
    flag = f"_unsent_{[c.name for c in batch.schema.columns].index(column)}"
    while flag.casefold() in names:
        flag += "_"
    return flag


def missing(target: str, batch: FoldedBatch, view: str) -> str:
    """The keys of batch rows with unsent columns whose old row is missing. A row with a changed key
    is looked up under its old key."""
    schema = batch.schema
    shown = ", ".join(f"b.{quote(n)}" for n in schema.key)
    rows = f"SELECT {shown} FROM {view} AS b WHERE b.`_unsent` IS NOT NULL AND NOT b.`_delete`"
    if batch.truncate and batch.mode is Mode.MIRROR:
        return rows
    pairs = []
    for name in schema.key:
        own = f"b.{quote(name)}"
        if batch.has_origins:
            own = f"CASE WHEN b.`_origin` IS NULL THEN {own} ELSE b.`_origin`.{quote(name)} END"
        pairs.append(f"{stored(schema.column(name).type, own)} <=> r.{quote(name)}")
    ranges = key_ranges(batch, "r")
    where = " AND ".join([*pairs, *([ranges] if ranges else [])])
    return f"{rows} AND NOT EXISTS (SELECT 1 FROM {target} AS r WHERE {where})"


def unsent_ddl(batch: FoldedBatch) -> list[str]:
    """The fields of a batch's files that mark unsent values."""
    fields = ["`_delete` BOOLEAN"]
    if batch.unsent:
        fields.append("`_unsent` BINARY")
    if batch.unsent and batch.has_origins:
        key = ", ".join(
            f"{quote(n)}: {read_type(batch.schema.column(n).type)}" for n in batch.schema.key
        )
        fields.append(f"`_origin` STRUCT<{key}>")
    return fields
