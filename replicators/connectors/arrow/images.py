"""The rows of change files by column: which values were not sent, and which keys changed. Knows no
target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.schema import TableSchema

NAMES = pa.list_(pa.string())
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def unsent_masks(bits: pa.Array, schema: TableSchema) -> dict[str, Mask]:
    """The rows whose value was not sent, for each column that has any. `bits` is `_unchanged`."""
    if bits.null_count == len(bits):
        return {}
    offsets, data = _buffers(bits)
    some = np.flatnonzero(bits.is_valid().to_numpy(zero_copy_only=False))
    found: dict[str, Mask] = {}
    starts, ends = offsets[:-1][some], offsets[1:][some]
    for i, column in enumerate(schema.columns):
        at = starts + (i >> 3)
        is_there = at < ends
        is_set = np.zeros(len(some), bool)
        is_set[is_there] = (data[at[is_there]] >> (i & 7)) & 1 != 0
        if is_set.any():
            mask = np.zeros(len(bits), bool)
            mask[some[is_set]] = True
            found[column.name] = mask
    return found


def fill_unsent(
    columns: dict[str, pa.Array], unsent: dict[str, Mask], before: pa.StructArray
) -> None:
    """Take unsent values from the whole old row, if there is one (CORRECTNESS 9)."""
    is_sent = before.is_valid().to_numpy(zero_copy_only=False)
    for name in list(unsent):
        can = unsent[name] & is_sent
        if can.any():
            old = pc.struct_field(before, [name])
            columns[name] = pc.if_else(pa.array(can), old, columns[name])
            unsent[name] = unsent[name] & ~is_sent
        if not unsent[name].any():
            del unsent[name]


def unsent_names(unsent: Mapping[str, Mask], rows: int) -> pa.Array:
    """The names of each row's unsent columns; NULL for none."""
    if not unsent:
        return pa.nulls(rows, NAMES)
    matrix = np.column_stack(list(unsent.values()))
    counts = matrix.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    names = pa.array(list(unsent), pa.string()).take(pa.array(np.nonzero(matrix)[1]))
    return pa.ListArray.from_arrays(pa.array(offsets), names, mask=pa.array(counts == 0))


def key_differs(key: Sequence[pa.Array], old: Sequence[pa.Array]) -> Mask:
    """Whether a row's key is another one than its old key. NULL equals NULL."""
    differs = np.zeros(len(key[0]) if key else 0, bool)
    for now, was in zip(key, old, strict=True):
        is_same = pc.fill_null(pc.equal(was, now), False).to_numpy(zero_copy_only=False)
        is_null = pc.and_(was.is_null(), now.is_null()).to_numpy(zero_copy_only=False)
        differs |= ~(is_same | is_null)
    return differs


def _buffers(array: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The offsets of a binary array's values, and the bytes that these offsets point into."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2]
    return offsets, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
