"""Writes records as JSON lines (`connectors.arrow.json_text`). `docs/files.md` has the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.images import Mask
from replicators.connectors.arrow.json_text import (
    NULL,
    concat,
    field_name,
    object_of,
    or_null,
    value,
)
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, Int, LogicalType, String, Timestamp
from replicators.targets.files.records import Records

_META: tuple[tuple[str, LogicalType], ...] = (
    ("_sequence", Int(64)),
    ("_operation", String()),
    ("_committed_at", Timestamp(zone=True)),
    ("_transaction", Int(64)),
    ("_schema", Int(32)),
    ("_unsent", Array(String())),
)


def lines(records: Records, schema: TableSchema) -> pa.Buffer:
    """One line of UTF-8 for each record."""
    rows = records.rows
    pieces: list[Any] = []
    for i, (name, kind) in enumerate(_META):
        pieces += [field_name(name, is_first=i == 0), or_null(value(rows.column(name), kind))]
    for name in ("key", "old_key", "after", "before"):
        if name in rows.schema.names:
            unsent = records.unsent if name == "after" else {}
            pieces += [field_name(name), _object(rows.column(name), schema, unsent)]
    text = concat("{", *pieces, "}\n")
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset :]
    return text.buffers()[2].slice(offsets[0], offsets[len(text)] - offsets[0])


def _object(rows: pa.StructArray, schema: TableSchema, unsent: dict[str, Mask]) -> pa.Array:
    """A JSON object for each row; a null row gives null. Unsent values are left out."""
    fields = [
        (f.name, value(pc.struct_field(rows, [f.name]), schema.column(f.name).type))
        for f in rows.type
    ]
    text = object_of(fields, unsent, len(rows))
    return pc.if_else(rows.is_valid(), text, NULL) if rows.null_count else text
