"""How a snapshot query selects a column, and how its result becomes the neutral form; no
connection."""

from __future__ import annotations

import pyarrow as pa

from replicators.connectors.arrow.unsupported import Fault, unsupported_values
from replicators.connectors.model.changes import FAULT_FIELDS
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import arrow_type
from replicators.connectors.mysql import sql
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql.forms import NotText, finish
from replicators.sources.mysql.results import Block
from replicators.sources.mysql.unsupported import fitting, no_days

GEOMETRY_HEAD = 4
TEXTS = ("time", "date_text", "datetime_text", "timestamp_text")


def select_list(table: TableSchema) -> str:
    """The columns of a chunk's query, in the schema's order."""
    return ", ".join(expression(c) for c in table.columns)


def expression(column: Column) -> str:
    """The column in a SELECT list, in a form that loses nothing and matches the log's values."""
    name = sql.name(column.name)
    if column.wire in ("bit", "decimal_text"):
        return f"{name} + 0"
    if column.wire in TEXTS:
        return f"CAST({name} AS CHAR)"
    return name


def to_batch(block: Block, table: TableSchema, *, marks: bool = False) -> pa.RecordBatch:
    """The batch with exactly `table.arrow_schema()`. Raises `source:value-unsupported` with the
    column of an unsupported value. With `marks`, rows with such a value outside their key are
    marked instead: the batch then has `FAULT_FIELDS` too."""
    arrays: list[pa.Array] = []
    faults: list[Fault] = []
    for place, column in enumerate(table.columns):
        array, found = _read(block, place, column)
        if found and (not marks or not table.key or column.name in table.key):
            raise ReplicationError(
                "source:value-unsupported", table=table.id, column=column.name, reason=found[0][1]
            )
        arrays.append(array)
        faults += [(row, place, reason) for row, reason in found]
    schema = table.arrow_schema()
    if faults:
        reported = unsupported_values(faults, len(arrays[0]), table.columns)
        schema = pa.schema([*schema, *FAULT_FIELDS])
        arrays += [reported.marks, reported.reasons]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(block: Block, place: int, column: Column) -> tuple[pa.Array, list[tuple[int, str]]]:
    """A column in its neutral form, and the rows with unsupported values and their reasons."""
    array, days = block.arrays[place], block.no_days[place]
    lost = no_days(days, column) if days is not None else []
    try:
        return _fitting(array, column), lost
    except (NotText, pa.ArrowInvalid):
        fits, found = fitting(array, column, _fitting)
        return fits, lost + found


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
