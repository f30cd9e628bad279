"""Turns rows of change files into the records of the target's files. Works by column; opens no file.

| column | Arrow type | meaning |
|---|---|---|
| `_sequence` | int64 | the change's position in the order of all changes; all rows of the first copy have the same one |
| `_operation` | string | read, insert, update, delete or truncate |
| `_committed_at` | timestamp[us, UTC] | the source's commit time; for a read row, the time of its snapshot |
| `_transaction` | int64 | the source's transaction number |
| `_schema` | int32 | the schema version |
| `_unsent` | list of string, NULL: none | columns whose value the source did not send because it did not change: NULL in `after`, left out in JSON |
| `key` | struct of the key's columns | the row's key (for a delete, the old key); NULL for a truncate |
| `old_key` | struct of the key's columns | the key before the change, if the change altered it |
| `after` | struct of all columns | the row after the change; NULL for a delete and a truncate |
| `before` | struct of all columns | the row before the change, if the source sends whole old rows and the target keeps them |

A table without a key has neither `key` nor `old_key`.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.images import (
    NAMES,
    Mask,
    fill_unsent,
    key_differs,
    unsent_masks,
    unsent_names,
)
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema

OPERATIONS = ("insert", "update", "delete", "truncate", "read")
"""Names of the `Op` values, by number."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one table, with a mask of unsent values of `after` for each column that has
    any."""

    rows: pa.RecordBatch
    unsent: dict[str, Mask]

    def slice(self, begin: int, end: int) -> Records:
        """The records from `begin` up to but not including `end`."""
        cut = {name: mask[begin:end] for name, mask in self.unsent.items()}
        return Records(self.rows.slice(begin, end - begin), cut)


def keeps_before(schema: TableSchema, is_wanted: bool) -> bool:
    """Whether records of this table have `before`."""
    return is_wanted and schema.full_before


def record_schema(schema: TableSchema, has_before: bool) -> pa.Schema:
    """The Arrow schema of a table's records."""
    image = schema.arrow_schema()
    key = pa.struct([image.field(name) for name in schema.key])
    keys = [pa.field("key", key), pa.field("old_key", key)] if schema.key else []
    before = [pa.field("before", pa.struct(list(image)))] if has_before else []
    return pa.schema(
        [
            pa.field("_sequence", pa.int64(), nullable=False),
            pa.field("_operation", pa.string(), nullable=False),
            pa.field("_committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("_transaction", pa.int64(), nullable=False),
            pa.field("_schema", pa.int32(), nullable=False),
            pa.field("_unsent", NAMES),
            *keys,
            pa.field("after", pa.struct(list(image))),
            *before,
        ]
    )


def records(batch: pa.RecordBatch, schema: TableSchema, version: int, has_before: bool) -> Records:
    """The records for rows in the form of `changes.change_schema`."""
    table_schema = record_schema(schema, has_before)
    op = batch.column("_op").to_numpy(zero_copy_only=False)
    is_gone = (op == int(Op.DELETE)) | (op == int(Op.TRUNCATE))
    before = _before(batch, schema)
    columns = {c.name: batch.column(c.name) for c in schema.columns}
    unsent = unsent_masks(batch.column("_unchanged"), schema)
    if schema.full_before and before is not None:
        fill_unsent(columns, unsent, before)
    arrays = [
        batch.column("_sequence"),
        pa.array(np.array(OPERATIONS, object)[op], pa.string()),
        batch.column("_committed_at"),
        batch.column("_transaction"),
        pa.array(np.full(len(op), version, np.int32)),
        unsent_names(unsent, len(op)),
    ]
    if schema.key:
        key = [columns[name] for name in schema.key]
        arrays.append(_struct(key, table_schema.field("key").type, op == int(Op.TRUNCATE)))
        arrays.append(_old_key(key, before, table_schema.field("key").type, op))
    arrays.append(_struct(list(columns.values()), table_schema.field("after").type, is_gone))
    if has_before:
        sent = (
            before if before is not None else pa.nulls(len(op), table_schema.field("before").type)
        )
        arrays.append(sent.cast(table_schema.field("before").type))
    return Records(pa.RecordBatch.from_arrays(arrays, schema=table_schema), unsent)


def _before(batch: pa.RecordBatch, schema: TableSchema) -> pa.StructArray | None:
    if "_before" not in batch.schema.names:
        return None
    before = batch.column("_before")
    return None if before.null_count == len(before) else before


def _struct(arrays: list[pa.Array], kind: pa.StructType, is_null: Mask) -> pa.StructArray:
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array(is_null))


def _old_key(
    key: list[pa.Array],
    before: pa.StructArray | None,
    kind: pa.StructType,
    op: np.ndarray[Any, Any],
) -> pa.Array:
    """The key before an update that changed it."""
    is_update = op == int(Op.UPDATE)
    if before is None or not is_update.any():
        return pa.nulls(len(op), kind)
    old = [pc.struct_field(before, [f.name]) for f in kind]
    is_other = key_differs(key, old)
    is_reported = is_update & is_other & before.is_valid().to_numpy(zero_copy_only=False)
    return _struct(old, kind, ~is_reported) if is_reported.any() else pa.nulls(len(op), kind)
