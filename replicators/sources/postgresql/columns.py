"""How a column is asked for in a snapshot query, and how its Arrow form becomes the neutral one; no connection."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import Column, TableSchema
from replicators.connectors.types import arrow_type
from replicators.sources.postgresql import kernels, sql
from replicators.sources.postgresql.values import REASONS

# What a wire's values are cast to in the query; a wire that is not here is asked for as it is.
CASTS = {
    "bool": "bool",
    "int2": "int2",
    "int4": "int4",
    "int8": "int8",
    "oid": "int8",
    "float4": "float4",
    "float8": "float8",
    "numeric": "numeric",
    "numeric_text": "text",
    "jsonb": "text",
    "uuid": "text",
    "bytea": "bytea",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "as_text": "text",
}
PLAIN = ("text", "character varying", "character(")


def expression(column: Column) -> str:
    """The column in a SELECT list, in a form that ADBC reads without loss."""
    name = sql.name(column.name)
    wire = column.wire
    if wire == "text":
        return name if column.native.startswith(PLAIN) else f"{name}::text AS {name}"
    if wire.endswith("[]"):
        return f"{name}::{_array_cast(wire[:-2])}[] AS {name}"
    return f"{name}::{CASTS[wire]} AS {name}"


def _array_cast(wire: str) -> str:
    return "text" if wire in ("text", "numeric") else CASTS[wire]


def select_list(table: TableSchema) -> str:
    """The columns of a chunk's query, in the schema's order; then, for each array, whether it has several dimensions."""
    checks = [
        f"array_ndims({sql.name(c.name)}) > 1" for c in table.columns if c.wire.endswith("[]")
    ]
    return ", ".join([*(expression(c) for c in table.columns), *checks])


def to_batch(batch: pa.RecordBatch, table: TableSchema) -> pa.RecordBatch:
    """The batch with exactly `table.arrow_schema()`; `source:value-unsupported` names a column that can't be had."""
    arrays = []
    check = len(table.columns)
    for at, column in enumerate(table.columns):
        array = _plain(batch.column(at))
        if column.wire.endswith("[]"):
            if pc.any(batch.column(check)).as_py():
                raise _refusal(table, column, kernels.DIMENSIONS)
            check += 1
        arrays.append(_fitting(array, column, table))
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema())


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _fitting(array: pa.Array, column: Column, table: TableSchema) -> pa.Array:
    wanted = arrow_type(column.type)
    values = array.flatten() if pa.types.is_list(array.type) else array
    fault = _range_fault(values)
    if fault:
        raise _refusal(table, column, fault)
    if array.type == wanted:
        return array
    try:
        return pc.cast(array, wanted)
    except pa.ArrowInvalid as err:
        raise _refusal(table, column, _number_fault(_plain(values))) from err


def _range_fault(values: pa.Array) -> int:
    """The fault of a date or time outside of what the log's decoder takes, with infinity; 0 where there is none."""
    kind = values.type
    if pa.types.is_date32(kind):
        number, low, high = pa.int32(), kernels.MIN_DAY, kernels.MAX_DAY
        fault = kernels.YEAR
    elif pa.types.is_timestamp(kind):
        number, low, high = pa.int64(), kernels.MIN_MICROS, kernels.MAX_MICROS
        fault = kernels.YEAR
    elif pa.types.is_time64(kind):
        number, low, high = pa.int64(), 0, kernels.DAY_MICROS - 1
        fault = kernels.DAY_END
    else:
        return 0
    found = pc.min_max(values.view(number))
    least, most = found["min"].as_py(), found["max"].as_py()
    if least is None or (least >= low and most <= high):
        return 0
    is_infinite = fault == kernels.YEAR and _has_infinity(values.view(number))
    return kernels.INFINITE_TIME if is_infinite else fault


def _has_infinity(values: pa.Array) -> bool:
    """ADBC moves PostgreSQL's epoch to 1970, and its infinities (the type's limits) with it, around the end."""
    bits = values.type.bit_width
    shift = kernels.EPOCH_DAYS if bits == 32 else kernels.EPOCH_MICROS
    half = 1 << (bits - 1)
    limits = [half - 1, -half]
    moved = [(limit + shift + half) % (2 * half) - half for limit in limits]
    return bool(pc.any(pc.is_in(values, pa.array([*limits, *moved], values.type))).as_py())


def _number_fault(values: pa.Array) -> int:
    if not pa.types.is_string(values.type):
        return kernels.TOO_PRECISE
    text = pc.utf8_lower(values)
    if pc.any(pc.equal(text, "nan")).as_py():
        return kernels.NAN
    return (
        kernels.INFINITE if pc.any(pc.match_substring(text, "inf")).as_py() else kernels.TOO_PRECISE
    )


def _refusal(table: TableSchema, column: Column, fault: int) -> ReplicationError:
    return ReplicationError(
        "source:value-unsupported", table=table.id, column=column.name, reason=REASONS[fault]
    )
