"""How a column is asked for in a snapshot query, and how its Arrow form becomes the neutral one; no connection."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import Column, TableSchema
from replicators.connectors.types import arrow_type
from replicators.sources.postgresql import sql

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
BLANK_PADDED = "character("


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
    """The columns of a chunk's query, in the schema's order."""
    return ", ".join(expression(c) for c in table.columns)


def to_batch(batch: pa.RecordBatch, table: TableSchema) -> pa.RecordBatch:
    """The batch with exactly `table.arrow_schema()`; `source:value-unsupported` names a column that can't be cast."""
    arrays = [_column(batch.column(i), c, table) for i, c in enumerate(table.columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema())


def _column(array: pa.Array, column: Column, table: TableSchema) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    wanted = arrow_type(column.type)
    try:
        return array if array.type == wanted else pc.cast(array, wanted)
    except pa.ArrowInvalid as err:
        raise ReplicationError(
            "source:value-unsupported",
            table=table.id,
            column=column.name,
            reason=f"it does not fit `{column.native}` here",
        ) from err
