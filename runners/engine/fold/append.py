"""Append: every change becomes one row of the target, which is a log, in order. Nothing is folded
(CORRECTNESS 7). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import SEQUENCE_SHIFT, Op
from replicators.connectors.model.schema import TableSchema
from runners.engine.fold.mirror import Folded, key_codes, unsent_matrix

_WORDS = pa.array([op.name.lower() for op in Op])


def fold_append(changes: pa.Table, schema: TableSchema) -> Folded:
    """The changes as rows with `_operation`, `_committed_at`, `_sequence` and `_unsent` (names of
    the columns that the log did not carry, NULL where it carried all). An update that changed its
    key becomes a `delete` of the old key, then the `update` with the next sequence. A TRUNCATE is a
    row without values."""
    return Folded(_rows(halves(changes, schema), schema), False, (), False)


@dataclass(frozen=True, slots=True)
class Halves:
    """Changes with a `_sequence` for each half, one of them or two for each change. `is_old`: the
    row's key and values are those of `_before`. None: of no row. `op`: what became of the row."""

    rows: pa.Table
    is_old: np.ndarray[Any, Any] | None
    op: Any


def halves(changes: pa.Table, schema: TableSchema) -> Halves:
    """The changes. One that changed its key gives two rows: a delete of the old key, then the
    update."""
    if "_before" not in changes.column_names:
        changes = _numbered(changes, np.ones(changes.num_rows, np.int64))
        return Halves(changes, None, changes.column("_op"))
    op = changes.column("_op").to_numpy()
    before = changes.column("_before").combine_chunks()
    had = before.is_valid().to_numpy(zero_copy_only=False)
    moved = np.flatnonzero((op == Op.UPDATE) & had & _key_differs(changes, before, schema))
    # A moved row gives two rows, delete then update: sorted by place, then by half.
    place = np.concatenate([np.arange(len(op)), moved])
    is_old = np.concatenate([(op == Op.DELETE) & had, np.ones(len(moved), bool)])
    half = np.concatenate([np.ones(len(op), np.int64), np.zeros(len(moved), np.int64)])
    order = np.lexsort((half, place))
    place, is_old = place[order], is_old[order]
    taken = _numbered(changes.take(pa.array(place)), half[order])
    return Halves(taken, is_old, pa.array(np.where(is_old, int(Op.DELETE), op[place])))


def _numbered(changes: pa.Table, half: np.ndarray[Any, Any]) -> pa.Table:
    """The rows with a `_sequence` for each half of a change, in the same segment: a change has an
    even and an odd number there."""
    sequence = changes.column("_sequence").to_numpy()
    segment = sequence >> SEQUENCE_SHIFT << SEQUENCE_SHIFT
    at = changes.schema.get_field_index("_sequence")
    own = pa.array(segment + 2 * (sequence - segment) + half)
    return changes.set_column(at, changes.schema.field(at), own)


def _key_differs(
    changes: pa.Table, before: pa.StructArray, schema: TableSchema
) -> np.ndarray[Any, Any]:
    """Whether a row's key differs from its old image. NULL equals NULL, and NaN equals NaN."""
    count = changes.num_rows
    if not schema.key:
        return np.zeros(count, bool)
    both = [
        pa.chunked_array([*changes.column(n).chunks, before.field(n)], changes.column(n).type)
        for n in schema.key
    ]
    codes = key_codes(both)
    differs: np.ndarray[Any, Any] = codes[:count] != codes[count:]
    return differs


def _rows(found: Halves, schema: TableSchema) -> pa.Table:
    changes, is_old, op = found.rows, found.is_old, found.op
    arrays: dict[str, Any] = {}
    kept: set[str] = set()
    flags = np.zeros(changes.num_rows, bool) if is_old is None else is_old
    for column in schema.columns:
        arrays[column.name] = changes.column(column.name).combine_chunks()
    if is_old is not None:
        before = changes.column("_before").combine_chunks()
        kept = {f.name for f in before.type}
        for name, after in arrays.items():
            then = before.field(name) if name in kept else pa.nulls(len(after), after.type)
            arrays[name] = pc.if_else(pa.array(flags), then, after)
    arrays["_operation"] = _WORDS.take(pc.cast(op, pa.int64()))
    arrays["_committed_at"] = changes.column("_committed_at")
    arrays["_sequence"] = changes.column("_sequence")
    arrays["_unsent"] = _unsent_names(changes, schema, flags, op, kept)
    return pa.table(arrays)


def _unsent_names(
    changes: pa.Table, schema: TableSchema, is_old: np.ndarray[Any, Any], op: Any, kept: set[str]
) -> pa.Array:
    """Per row the names of the columns that were not sent. An old image has the columns `kept`; a
    delete without one has the key's. NULL where all were sent, and for a TRUNCATE."""
    names = [c.name for c in schema.columns]
    missing = np.zeros((changes.num_rows, len(names)), bool)
    partial, unsent = unsent_matrix(changes.column("_unchanged"), schema)
    missing[:, partial] = unsent == 1
    codes = np.asarray(op)
    missing[is_old] = [n not in kept for n in names]
    missing[(codes == Op.DELETE) & ~is_old] = [n not in schema.key for n in names]
    missing[codes == Op.TRUNCATE] = False
    counts = missing.sum(axis=1)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    flat = pa.array(names).take(pa.array(np.nonzero(missing)[1]))
    return pa.ListArray.from_arrays(pa.array(ends), flat, mask=pa.array(counts == 0))
