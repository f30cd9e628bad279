"""Decides which of several foldings of one merge a change belongs to: all changes of a key go to
the same one. Knows no file, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import Op
from runners.engine.fold.mirror import one_zero
from runners.engine.fold.row_hash import DIGEST_BYTES, row_hashes

KEPT = ("_sequence", "_committed_at", "_transaction", "_position")
ODD = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


def of_bucket(
    changes: pa.Table, key: Sequence[str], bucket: int, buckets: int, *, moves: bool
) -> pa.Table:
    """The changes whose key is in `bucket` of `buckets`; without a key, one part in `buckets`.
    `moves`: some changes may change a key. Each of these becomes an upsert of the new key, and a
    delete of the old key in the old key's bucket (CORRECTNESS 8), in any order among each other. Do
    not pass rows with changed keys whose old row's values are still needed."""
    if not key:
        own = changes.column("_sequence").to_numpy() % buckets
        return changes.filter(pa.array(own == bucket))
    mine = changes.filter(pa.array(_buckets_of(changes.select(key), buckets) == bucket))
    if not moves:
        return mine
    place = changes.schema.get_field_index("_before")
    field = changes.schema.field(place)
    mine = mine.set_column(place, field, pa.nulls(mine.num_rows, field.type))
    olds = _old_keys(changes, key)
    olds = olds.filter(pa.array(_buckets_of(olds.select(key), buckets) == bucket))
    return pa.concat_tables([mine, olds])


def _buckets_of(keys: pa.Table, buckets: int) -> np.ndarray[Any, Any]:
    """Each row's bucket. It depends only on the key's values; any spread is good."""
    first = keys.column(0)
    if keys.num_columns == 1 and pa.types.is_integer(first.type) and not first.null_count:
        numbers: np.ndarray[Any, Any] = first.to_numpy().astype(np.uint64)
        mixed = (numbers ^ (numbers >> HALF)) * ODD
        return np.asarray((mixed >> HALF) % np.uint64(buckets))
    plain = pa.table([one_zero(c) for c in keys.columns], names=keys.column_names)
    digests = row_hashes(plain, keys.column_names).combine_chunks()
    if not len(digests):
        return np.zeros(0, np.uint64)
    words = np.frombuffer(digests.buffers()[2], np.uint64)
    own: np.ndarray[Any, Any] = words[digests.offset * DIGEST_BYTES // 8 :][: 2 * len(digests) : 2]
    return own % np.uint64(buckets)


def _old_keys(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """A delete of the old key for each update that changed it."""
    before = changes.column("_before")
    is_update = pc.equal(changes.column("_op"), int(Op.UPDATE))
    asked = changes.filter(pc.and_(is_update, pc.is_valid(before)))
    olds = {k: pc.struct_field(asked.column("_before"), [k]) for k in key}
    differ = pa.array(np.zeros(asked.num_rows, np.bool_))
    for k, old in olds.items():
        differ = pc.or_(differ, pc.invert(_same(old, asked.column(k))))
    rows = asked.num_rows
    columns = []
    for field in changes.schema:
        if field.name in olds:
            columns.append(olds[field.name].cast(field.type))
        elif field.name == "_op":
            columns.append(pa.repeat(pa.scalar(int(Op.DELETE), field.type), rows))
        elif field.name in KEPT:
            columns.append(asked.column(field.name))
        else:
            columns.append(pa.nulls(rows, field.type))
    return pa.Table.from_arrays(columns, schema=changes.schema).filter(differ)


def _same(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether two keys are equal; NaN equals NaN."""
    old, new = one_zero(old), one_zero(new)
    same = pc.fill_null(pc.equal(old, new), False)
    if pa.types.is_floating(new.type):
        both = pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False)
        same = pc.or_(same, both)
    return same
