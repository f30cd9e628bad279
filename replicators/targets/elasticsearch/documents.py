"""Turns rows of change files into documents and deletions. Works by column.

Only the last thing that happens to a document within the rows counts. A changed key deletes the
document of the old key and writes one of the new key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.arrow.images import Mask, fill_unsent, key_differs, unsent_masks
from replicators.connectors.arrow.json_text import TEXT, column_value, object_of
from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Array, Json, LogicalType
from replicators.targets.elasticsearch.naming import ids

Ints = np.ndarray[Any, np.dtype[np.int64]]
PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Writes:
    """Documents to write, with their versions; `body` is NULL where the document is deleted."""

    id: pa.Array
    version: Ints
    body: pa.Array

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: Any) -> Writes:
        """Some of them."""
        at = pa.array(rows)
        return Writes(self.id.take(at), self.version[rows], self.body.take(at))


@dataclass(frozen=True, slots=True)
class Partial:
    """Documents that lack values which the source did not send. `origin` is the id of the document
    that has them. `lacks`: the fields, by document."""

    writes: Writes
    origin: pa.Array
    lacks: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Documents:
    """What rows do to an index: `whole` first, then `partial`, then `moved`: the deletions of old
    keys whose document has to be read before."""

    whole: Writes
    partial: Partial
    moved: Writes


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in parts of a moderate size."""
    count = min(batch.num_rows, 1 + batch.nbytes // PIECE_BYTES)
    step = -(-batch.num_rows // count) if count else 1
    for begin in range(0, batch.num_rows, step):
        yield batch.slice(begin, step)


def beyond(batch: pa.RecordBatch, floor: int) -> pa.RecordBatch:
    """The rows after a TRUNCATE, without any TRUNCATE."""
    sequence = batch.column("_sequence")
    op = batch.column("_op")
    if not batch.num_rows or not (
        sequence[0].as_py() <= floor or pc.any(pc.equal(op, int(Op.TRUNCATE))).as_py()
    ):
        return batch
    keep = pc.and_(pc.greater(sequence, floor), pc.not_equal(op, int(Op.TRUNCATE)))
    return batch.filter(keep)


def cuts(batch: pa.RecordBatch, schema: TableSchema) -> list[pa.RecordBatch]:
    """The batch, cut so that a row with a changed key and unsent values is alone."""
    rows = _Rows(batch, schema)
    if not rows.unsent or not rows.moved.any():
        return [batch]
    alone = np.flatnonzero(rows.moved & rows.is_partial())
    edges = np.unique(np.concatenate((alone, alone + 1, [0, batch.num_rows])))
    return [batch.slice(b, e - b) for b, e in zip(edges[:-1], edges[1:], strict=True)]


def documents(batch: pa.RecordBatch, schema: TableSchema, json_objects: bool) -> Documents:
    """The documents of rows in the form of `changes.change_schema`, without TRUNCATEs."""
    rows = _Rows(batch, schema)
    id_ = ids([rows.columns[name] for name in schema.key], schema)
    moved = np.flatnonzero(rows.moved)
    old = rows.old_ids(moved)
    codes = pa.concat_arrays([id_, old]).dictionary_encode().indices.to_numpy()
    own, olds = codes[: len(id_)], codes[len(id_) :]
    rows.fill(own)
    order = np.concatenate((2 * np.arange(len(id_)) + 1, 2 * moved))
    by_order = np.argsort(order, kind="stable")
    last = np.zeros(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    last[codes[by_order]] = order[by_order]
    is_last = last[own] == 2 * np.arange(len(id_)) + 1
    old_is_last = last[olds] == 2 * moved
    partial = rows.is_partial() & is_last
    waits = rows.is_partial()[moved] & old_is_last
    whole = np.flatnonzero(is_last & ~partial)
    gone = np.flatnonzero(old_is_last & ~waits)
    writes = _joined(
        rows.writes(id_, whole, json_objects), _deletes(old, rows.sequence[moved], gone)
    )
    return Documents(
        writes,
        _partial(rows, id_, old, np.flatnonzero(partial), json_objects),
        _deletes(old, rows.sequence[moved], np.flatnonzero(waits)),
    )


class _Rows:
    """The rows by column, with what the source did not send."""

    def __init__(self, batch: pa.RecordBatch, schema: TableSchema) -> None:
        self.schema = schema
        self.sequence: Ints = batch.column("_sequence").to_numpy()
        op = batch.column("_op").to_numpy()
        self.is_delete: Mask = op == int(Op.DELETE)
        self.columns = {c.name: batch.column(c.name) for c in schema.columns}
        self.unsent = unsent_masks(batch.column("_unchanged"), schema)
        self.moved: Mask = np.zeros(len(op), bool)
        self._old: list[pa.Array] = []
        before = batch.column("_before") if "_before" in batch.schema.names else None
        if before is None or before.null_count == len(before):
            return
        if schema.full_before:
            fill_unsent(self.columns, self.unsent, before)
        self._old = [pc.struct_field(before, [name]) for name in schema.key]
        key = [self.columns[name] for name in schema.key]
        is_sent = before.is_valid().to_numpy(zero_copy_only=False)
        is_update = op == int(Op.UPDATE)
        self.moved = key_differs(key, self._old) & is_sent & is_update

    def is_partial(self) -> Mask:
        """The rows that lack a value."""
        found: Mask = np.zeros(len(self.sequence), bool)
        for mask in self.unsent.values():
            found |= mask
        return found & ~self.is_delete

    def old_ids(self, moved: Any) -> pa.Array:
        """The ids of old keys."""
        if not len(moved):
            return pa.array([], TEXT)
        at = pa.array(moved)
        return ids([c.take(at) for c in self._old], self.schema)

    def fill(self, codes: Any) -> None:
        """Take unsent values from the rows before, of the same document."""
        if not self.unsent:
            return
        order = np.lexsort((np.arange(len(codes)), codes))
        group = codes[order]
        begins = np.append(True, group[1:] != group[:-1]) | (self.is_delete | self.moved)[order]
        place = np.arange(len(order))
        start = np.maximum.accumulate(np.where(begins, place, 0))
        for name in list(self.unsent):
            mask = self.unsent[name]
            sent = np.maximum.accumulate(np.where(~(mask | self.is_delete)[order], place, -1))
            can = mask[order] & (sent >= start)
            if not can.any():
                continue
            source = np.arange(len(order))
            source[order[can]] = order[sent[can]]
            self.columns[name] = self.columns[name].take(pa.array(source))
            left = mask.copy()
            left[order[can]] = False
            self.unsent[name] = left
        self.unsent = {n: m for n, m in self.unsent.items() if m.any()}

    def writes(self, id_: pa.Array, at: Any, json_objects: bool) -> Writes:
        """The documents of some rows; a deleted row has none."""
        rows = pa.array(at)
        unsent = {n: m[at] for n, m in self.unsent.items() if m[at].any()}
        texts = [
            (c.name, _text(self.columns[c.name].take(rows), c, json_objects))
            for c in self.schema.columns
        ]
        body = object_of(texts, unsent, len(at))
        is_delete = self.is_delete[at]
        if is_delete.any():
            body = pc.if_else(pa.array(is_delete), pa.scalar(None, TEXT), body)
        return Writes(id_.take(rows), self.sequence[at], body)


def _text(array: pa.Array, column: Column, json_objects: bool) -> pa.Array:
    """A value's JSON text. Documents of JSON are strings, unless they are kept as objects."""
    if not json_objects and _is_json(column.type):
        from replicators.connectors.arrow.json_text import value

        return value(array, column.type)
    return column_value(array, column)


def _is_json(kind: LogicalType) -> bool:
    return isinstance(kind, Json) or (isinstance(kind, Array) and _is_json(kind.of))


def _deletes(id_: pa.Array, version: Ints, at: Any) -> Writes:
    return Writes(id_.take(pa.array(at, pa.int64())), version[at], pa.nulls(len(at), TEXT))


def _joined(one: Writes, other: Writes) -> Writes:
    if not len(other):
        return one
    return Writes(
        pa.concat_arrays([one.id, other.id]),
        np.concatenate((one.version, other.version)),
        pa.concat_arrays([one.body, other.body]),
    )


def _partial(rows: _Rows, id_: pa.Array, old: pa.Array, at: Any, json_objects: bool) -> Partial:
    writes = rows.writes(id_, at, json_objects)
    if not len(at):
        return Partial(writes, writes.id, ())
    names = list(rows.unsent)
    matrix = np.column_stack([rows.unsent[n][at] for n in names])
    lacks = tuple(tuple(names[i] for i in np.flatnonzero(row)) for row in matrix)
    origin = writes.id
    if len(old):
        place = np.full(len(id_), -1)
        place[np.flatnonzero(rows.moved)] = np.arange(len(old))
        has_old = place[at] >= 0
        taken = old.take(pa.array(np.maximum(place[at], 0)))
        origin = pc.if_else(pa.array(has_old), taken, origin)
    return Partial(writes, origin, lacks)
