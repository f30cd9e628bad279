"""Folds change rows into one row per key for soft delete; deleted rows keep their last values
(CORRECTNESS 6-9). Pure: Arrow to Arrow.

It is the same replay over key codes as in `fold`, but a key keeps its values when it is deleted. A
deleted row's columns come from its last image in the batch, or from the whole row where the log
carries one. Otherwise they are unsent, and the target fills them from its own row.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa

from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema
from runners.engine.fold.mirror import (
    CodedKeys,
    Folded,
    bitmap,
    coded_keys,
    origin_column,
    unsent_matrix,
)

_INSERT, _DELETE, _TRUNCATE = int(Op.INSERT), int(Op.DELETE), int(Op.TRUNCATE)
DELETED_AT = "_deleted_at"


@nb.njit(cache=True, nogil=True)
def replay_soft(op, new, old, whole, unsent, keys):  # type: ignore[no-untyped-def]  # noqa: C901 - one pass
    """Replay n rows over `keys` key codes; `old` and `unsent` as in `fold.replay`, `whole[r]` is 1
    where a delete carries the whole old row. Gives per key: its last row (-1: untouched), whether
    it is deleted, whose target row fills what was never sent (-1: nobody's), the row of its last
    image (-1: none; n + r: the old row of r), per partial column the row that sent it, and the
    first TRUNCATE (-1: none)."""
    n, columns = len(op), unsent.shape[1]
    last = np.full(keys, -1, np.int64)
    gone = np.zeros(keys, np.uint8)
    origin = np.arange(keys)
    image = np.full(keys, -1, np.int64)
    sent_by = np.full((keys, columns), -1, np.int64)
    truncated = -1
    for r in range(n):
        if op[r] == _TRUNCATE:
            truncated = r if truncated < 0 else truncated
            for k in range(keys):
                if last[k] >= 0 and gone[k] == 0:
                    last[k] = r
                    gone[k] = 1
            continue
        k = new[r]
        last[k] = r
        if op[r] == _DELETE:
            gone[k] = 1
            if whole[r] == 1:
                origin[k] = -1
                image[k] = n + r
                sent_by[k, :] = n + r
            continue
        if op[r] == _INSERT:
            origin[k] = -1
        elif old[r] >= 0:
            j = old[r]
            origin[k] = origin[j]
            sent_by[k, :] = sent_by[j, :]
            last[j] = r
            gone[j] = 1
        gone[k] = 0
        image[k] = r
        for c in range(columns):
            if unsent[r, c] == 0:
                sent_by[k, c] = r
    return last, gone, origin, image, sent_by, truncated


def fold_soft(changes: pa.Table, schema: TableSchema) -> Folded:
    """One row per key that `changes` touch, with `_delete` and `_deleted_at` set where the row is
    gone. A TRUNCATE deletes every key of the batch. `truncated_at` says when the target's other
    keys were deleted."""
    coded = coded_keys(changes, schema)
    partial, unsent = unsent_matrix(changes.column("_unchanged"), schema)
    state = replay_soft(
        coded.op, coded.new, coded.old, _whole(changes, schema, coded), unsent, coded.total
    )
    return _assembled(changes, schema, coded, partial, state)


def _whole(changes: pa.Table, schema: TableSchema, coded: CodedKeys) -> np.ndarray[Any, Any]:
    if not schema.full_before:
        return np.zeros(len(coded.op), np.uint8)
    carried = changes.column("_before").combine_chunks().is_valid()
    return np.asarray(carried.to_numpy(zero_copy_only=False), np.uint8)


def _assembled(
    changes: pa.Table,
    schema: TableSchema,
    coded: CodedKeys,
    partial: list[int],
    state: tuple[Any, ...],
) -> Folded:
    last, gone, origin, image, sent_by, truncated = state
    places = np.flatnonzero(last >= 0)
    arrays, missing = gathered(
        coded,
        schema,
        partial,
        places,
        (image[places], sent_by[places]),
        lambda name: images(changes, schema, name),
    )
    origins = np.where(missing.any(axis=1) & (origin[places] != places), origin[places], -1)
    is_gone = gone[places].astype(bool)
    arrays["_delete"] = pa.array(is_gone)
    arrays |= unsent_columns(coded, schema, missing, origins)
    arrays[DELETED_AT] = changes.column("_committed_at").take(pa.array(last[places], mask=~is_gone))
    return finished(changes, schema, arrays, missing, origins, truncated)


def gathered(
    coded: CodedKeys,
    schema: TableSchema,
    partial: list[int],
    places: np.ndarray[Any, Any],
    rows_of: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    values: Callable[[str], pa.ChunkedArray],
    blank: np.ndarray[Any, Any] | None = None,
) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """The table's columns for rows whose keys have the codes `places`, and which of their values
    were never sent. `rows_of`: each row's last image, and per partial column the row that sent it
    (-1: none). Both index what `values` gives for a column. `blank` rows need nothing but the
    key."""
    image, sent_by = rows_of
    keys = dict(zip(schema.key, coded.columns, strict=True))
    blank = np.zeros(len(places), bool) if blank is None else blank
    missing = np.zeros((len(places), len(schema.columns)), bool)
    arrays: dict[str, Any] = {}
    for position, column in enumerate(schema.columns):
        if column.name in keys:
            arrays[column.name] = keys[column.name].take(pa.array(coded.first[places]))
            continue
        rows = sent_by[:, partial.index(position)] if position in partial else image
        missing[:, position] = (rows < 0) & ~blank
        arrays[column.name] = values(column.name).take(pa.array(rows, mask=(rows < 0) | blank))
    return arrays, missing


def unsent_columns(
    coded: CodedKeys,
    schema: TableSchema,
    missing: np.ndarray[Any, Any],
    origins: np.ndarray[Any, Any],
) -> dict[str, Any]:
    """`_unsent` and `_origin` of rows: `missing[row, column]` was never sent, and the row of the
    key `origins` (-1: none) fills it."""
    return {
        "_unsent": bitmap(missing, list(range(len(schema.columns))), schema),
        "_origin": origin_column(coded.columns, coded.first, origins, schema),
    }


def finished(
    changes: pa.Table,
    schema: TableSchema,
    arrays: dict[str, Any],
    missing: np.ndarray[Any, Any],
    origins: np.ndarray[Any, Any],
    truncated: int,
) -> Folded:
    """The folding of these columns; `truncated` is the first TRUNCATE's row, -1 for none."""
    unsent = tuple(c.name for i, c in enumerate(schema.columns) if missing[:, i].any())
    return Folded(
        pa.table(arrays),
        truncated >= 0,
        unsent,
        bool((origins >= 0).any()),
        committed(changes, truncated),
    )


def images(changes: pa.Table, schema: TableSchema, name: str) -> pa.ChunkedArray:
    """A column's values in the rows' images, then, where the log carries whole old rows, in
    these."""
    values = changes.column(name)
    if not schema.full_before:
        return values
    before = changes.column("_before").combine_chunks()
    return pa.chunked_array([*values.chunks, before.field(name)], values.type)


def committed(changes: pa.Table, row: int) -> datetime | None:
    """When the transaction of a row was committed; None for row -1."""
    if row < 0:
        return None
    found: datetime = changes.column("_committed_at")[int(row)].as_py()
    return found
