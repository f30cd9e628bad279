"""How a column is asked for in a snapshot query, and how what comes becomes the neutral form; no connection."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.errors import ReplicationError
from replicators.connectors.schema import Column, TableSchema
from replicators.connectors.types import arrow_type
from replicators.sources.mysql import kernels as k
from replicators.sources.mysql import sql
from replicators.sources.mysql.forms import NotText, finish
from replicators.sources.mysql.results import Block
from replicators.sources.mysql.values import REASONS

GEOMETRY_HEAD = 4
TEXTS = ("time", "date_text", "datetime_text", "timestamp_text")


def select_list(table: TableSchema) -> str:
    """The columns of a chunk's query, in the schema's order."""
    return ", ".join(expression(c) for c in table.columns)


def expression(column: Column) -> str:
    """The column in a SELECT list, in a form that loses nothing and that the log's values have too."""
    name = sql.name(column.name)
    if column.wire in ("bit", "decimal_text"):
        return f"{name} + 0"
    if column.wire in TEXTS:
        return f"CAST({name} AS CHAR)"
    return name


def to_batch(block: Block, table: TableSchema) -> pa.RecordBatch:
    """The batch with exactly `table.arrow_schema()`; `source:value-unsupported` names a column that can't be had."""
    fitting = []
    for array, no_days, column in zip(block.arrays, block.no_days, table.columns, strict=True):
        try:
            if no_days and column.wire.endswith("_fail"):
                raise NotText(REASONS[k.ZERO_DATE])
            fitting.append(_fitting(array, column))
        except (NotText, pa.ArrowInvalid) as err:
            reason = str(err) if isinstance(err, NotText) else "it does not fit its type"
            raise ReplicationError(
                "source:value-unsupported", table=table.id, column=column.name, reason=reason
            ) from err
    return pa.RecordBatch.from_arrays(fitting, schema=table.arrow_schema())


def _fitting(array: pa.Array, column: Column) -> pa.Array:
    wanted = arrow_type(column.type)
    if not pa.types.is_binary(array.type):
        return array.cast(wanted)
    wire = column.wire.partition(":")[0]
    if wire == "geometry":
        return pa.array([v and v[GEOMETRY_HEAD:] for v in array.to_pylist()], pa.binary())
    if wire in ("bytes", "vector"):
        return finish(array, column)
    texts = array.cast(pa.string())
    return texts if pa.types.is_string(wanted) else texts.cast(wanted)
