"""How a column is asked for in a snapshot query, and how the server's text becomes the neutral form; no connection."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import Column, TableSchema
from replicators.connectors.types import Boolean, arrow_type
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql import sql
from replicators.sources.mysql.forms import NotText, finish
from replicators.sources.mysql.values import REASONS

GEOMETRY_HEAD = 4
NO_DATE = r"^(0000|\d{4}-00|\d{4}-\d{2}-00)"
AS_TEXT = (
    "text",
    "time",
    "enum",
    "set",
    "json",
    "json_text",
    "uuid",
    "inet4",
    "inet6",
    "decimal_text",
)


def select_list(table: TableSchema) -> str:
    """The columns of a chunk's query, in the schema's order."""
    return ", ".join(expression(c) for c in table.columns)


def expression(column: Column) -> str:
    """The column in a SELECT list, in a form whose text loses nothing."""
    name = sql.name(column.name)
    if column.wire == "float":
        return f"{name} + 0e0"
    if column.wire in ("bit", "decimal_text"):
        return f"{name} + 0"
    return name


def to_batch(arrays: Sequence[pa.Array], table: TableSchema) -> pa.RecordBatch:
    """The batch with exactly `table.arrow_schema()`; `source:value-unsupported` names a column that can't be had."""
    fitting = []
    for array, column in zip(arrays, table.columns, strict=True):
        try:
            fitting.append(_fitting(array, column))
        except (NotText, pa.ArrowInvalid) as err:
            reason = str(err) if isinstance(err, NotText) else "it does not fit its type"
            raise ReplicationError(
                "source:value-unsupported", table=table.id, column=column.name, reason=reason
            ) from err
    return pa.RecordBatch.from_arrays(fitting, schema=table.arrow_schema())


def _fitting(array: pa.Array, column: Column) -> pa.Array:
    wire = column.wire.partition(":")[0]
    if wire == "geometry":
        return pa.array([v and v[GEOMETRY_HEAD:] for v in array.to_pylist()], pa.binary())
    if wire in ("bytes", "vector"):
        return finish(array, column)
    texts = array.cast(pa.string())
    if wire in AS_TEXT or wire.endswith("_text"):
        return texts
    if wire.partition("_")[0] in ("date", "datetime", "timestamp"):
        return _moments(texts, column)
    wanted = arrow_type(column.type)
    if isinstance(column.type, Boolean):
        return texts.cast(pa.int8()).cast(wanted)
    if wire == "float":
        return texts.cast(pa.float64()).cast(wanted)
    return texts.cast(wanted)


def _moments(texts: pa.Array, column: Column) -> pa.Array:
    is_none = pc.match_substring_regex(texts, NO_DATE)
    if pc.any(is_none).as_py():
        if column.wire.endswith("_fail"):
            raise NotText(REASONS[k.ZERO_DATE])
        texts = pc.if_else(is_none, pa.scalar(None, pa.string()), texts)
    kind = (
        pa.date32()
        if column.wire.startswith("date") and "time" not in column.wire
        else pa.timestamp("us")
    )
    try:
        moments = texts.cast(kind)
    except pa.ArrowInvalid:
        moments = _one_by_one(texts, kind, column)
    return moments.cast(arrow_type(column.type)) if kind == pa.timestamp("us") else moments


def _one_by_one(texts: pa.Array, kind: pa.DataType, column: Column) -> pa.Array:
    """Among them is a day that the calendar does not have, such as the 31st of February."""
    found = []
    for text in texts:
        try:
            found.append(text.cast(kind))
        except pa.ArrowInvalid as err:
            if column.wire.endswith("_fail"):
                raise NotText(REASONS[k.ZERO_DATE]) from err
            found.append(pa.scalar(None, kind))
    return pa.array([f.as_py() for f in found], kind)
