"""Messages: every change becomes a message in JSON, with a number of its own. Nothing is folded
(CORRECTNESS 7). Pure.

| column | what |
|---|---|
| `table` | the source table, `schema.name` |
| `message_id` | as `_sequence` of the mode append; below 0 for rows of the first copy |
| `key` | a JSON list of the key's values; NULL for a TRUNCATE, and without a key |
| `value` | a JSON object, see below |

| field of `value` | what |
|---|---|
| `_operation` | read (by the first copy), insert, update, delete or truncate |
| `_committed_at` | the source's commit time; for a read row, the time of its snapshot |
| `_transaction` | the source's transaction number; not for a read row |
| `_unsent` | names of the columns that the log did not carry and `after` lacks; only where there are any |
| `after` | the row after the change; null for a delete and a TRUNCATE |
| `before` | the row before the change; only where the log has whole old rows |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow import json_text
from replicators.connectors.arrow.images import unsent_names
from replicators.connectors.arrow.json_text import NULL, Mask, column_value, concat, object_of
from replicators.connectors.model.changes import Op
from replicators.connectors.model.modes import MESSAGE_COLUMNS, Mode, stored
from replicators.connectors.model.schema import TableSchema
from replicators.connectors.model.types import Array, Int, String, Timestamp
from replicators.connectors.snapshot import Chunk, ChunkReader
from runners.engine.fold.append import halves
from runners.engine.fold.mirror import Folded, unsent_matrix

_WORDS = pa.array([op.name.lower() for op in Op])
FIRST_READ = -(1 << 62)
"""The first copy's messages are numbered from here, 2**32 numbers for each chunk."""
_CHUNK_SHIFT = 32
Arrays = Mapping[str, pa.Array]


def fold_messages(changes: pa.Table, schema: TableSchema) -> Folded:
    """The changes as messages. An update that changed its key is a `delete` of the old key, then
    the `update` with the next number."""
    found = halves(changes, schema)
    rows = found.rows.combine_chunks()
    op = np.asarray(found.op)
    images = {c.name: rows.column(c.name).combine_chunks() for c in schema.supported}
    unsent = _unsent(rows, schema)
    before: Arrays = {}
    has_before = np.zeros(rows.num_rows, bool)
    if found.is_old is not None:
        struct = rows.column("_before").combine_chunks()
        has_before = struct.is_valid().to_numpy(zero_copy_only=False)
        before = {f.name: pc.struct_field(struct, [f.name]) for f in struct.type}
        if schema.full_before:
            images, unsent = _filled(images, unsent, before, has_before)
    key = {n: images[n] for n in schema.key}
    if found.is_old is not None:
        is_old = pa.array(found.is_old)
        key = {n: pc.if_else(is_old, before[n], values) for n, values in key.items()}
    is_gone = (op == int(Op.DELETE)) | (op == int(Op.TRUNCATE))
    facts = {
        "_operation": json_text.value(_WORDS.take(pa.array(op, pa.int64())), String()),
        "_committed_at": _times(rows.column("_committed_at").combine_chunks()),
        "_transaction": json_text.value(rows.column("_transaction").combine_chunks(), Int(64)),
    }
    left = {name: mask & ~is_gone for name, mask in unsent.items()}
    names = unsent_names(left, rows.num_rows)
    facts["_unsent"] = json_text.value(names, Array(String()))
    facts["after"] = _image(images, schema, left, is_gone)
    absent: dict[str, Mask] = {"_unsent": names.is_null().to_numpy(zero_copy_only=False)}
    if schema.full_before and before:
        facts["before"] = _image(before, schema, {}, ~has_before)
        absent["before"] = ~has_before
    absent = {name: mask for name, mask in absent.items() if mask.any()}
    made = _messages(
        schema,
        rows.column("_sequence").combine_chunks(),
        _key(key, schema, op == int(Op.TRUNCATE), rows.num_rows),
        object_of(list(facts.items()), absent, rows.num_rows),
    )
    return Folded(made, False, (), False)


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """A `ChunkReader` that gives the rows of another one as messages of the first copy. They are
    numbered in the chunk's order. The consistent snapshot was opened `at`."""

    read: ChunkReader
    at: datetime

    def __call__(self, chunk: Chunk, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        first = FIRST_READ + (chunk.number << _CHUNK_SHIFT)
        for batch in self.read(chunk, schema):
            yield from _read(batch, schema, self.at, first).to_batches()
            first += batch.num_rows


def _read(batch: pa.RecordBatch, schema: TableSchema, at: datetime, first: int) -> pa.Table:
    rows = batch.num_rows
    images = {c.name: batch.column(c.name) for c in schema.supported}
    when = pa.array([at], pa.timestamp("us", tz="UTC"))
    facts = [
        ("_operation", _same('"read"', rows)),
        ("_committed_at", _same(_times(when)[0].as_py(), rows)),
        ("after", _image(images, schema, {}, np.zeros(rows, bool))),
    ]
    key = {n: images[n] for n in schema.key}
    return _messages(
        schema,
        pa.array(np.arange(first, first + rows, dtype=np.int64)),
        _key(key, schema, np.zeros(rows, bool), rows),
        object_of(facts, {}, rows),
    )


def _messages(schema: TableSchema, numbers: pa.Array, key: pa.Array, value: pa.Array) -> pa.Table:
    table = pa.repeat(pa.scalar(str(schema.id)), len(numbers))
    arrays = [table, numbers, key, value]
    names = [c.name for c in MESSAGE_COLUMNS]
    return pa.table(arrays, names).cast(stored(schema, Mode.MESSAGES).arrow_schema())


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, json_text.TEXT), rows)


def _times(values: pa.Array) -> pa.Array:
    return json_text.value(values, Timestamp(zone=True))


def _image(images: Arrays, schema: TableSchema, unsent: dict[str, Mask], none: Mask) -> pa.Array:
    fields = [
        (c.name, column_value(images[c.name], c)) for c in schema.supported if c.name in images
    ]
    text = object_of(fields, {n: m for n, m in unsent.items() if m.any()}, len(none))
    return pc.if_else(pa.array(none), NULL, text) if none.any() else text


def _key(key: Arrays, schema: TableSchema, none: Mask, rows: int) -> pa.Array:
    if not key:
        return pa.nulls(rows, json_text.TEXT)
    parts: list[Any] = []
    for name, values in key.items():
        text = json_text.or_null(column_value(values, schema.column(name)))
        parts += [",", text] if parts else [text]
    return pc.if_else(pa.array(none), pa.scalar(None, json_text.TEXT), concat("[", *parts, "]"))


def _unsent(rows: pa.Table, schema: TableSchema) -> dict[str, Mask]:
    places, marks = unsent_matrix(rows.column("_unchanged"), schema)
    known = {c.name for c in schema.supported}
    found = {schema.columns[place].name: marks[:, i] == 1 for i, place in enumerate(places)}
    return {name: mask for name, mask in found.items() if name in known}


def _filled(
    images: Arrays, unsent: dict[str, Mask], before: Arrays, has_before: Mask
) -> tuple[dict[str, pa.Array], dict[str, Mask]]:
    """Unsent values, taken from the whole old row (CORRECTNESS 9)."""
    filled = dict(images)
    for name, mask in unsent.items():
        filled[name] = pc.if_else(pa.array(mask & has_before), before[name], filled[name])
    return filled, {name: mask & ~has_before for name, mask in unsent.items()}
