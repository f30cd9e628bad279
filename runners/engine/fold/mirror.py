"""Folds change rows into one row per key: a pure function from Arrow to Arrow (CORRECTNESS 6-9,
11). No I/O, no Spark.

The rows are replayed in sequence order over key *codes* (dense integers). The state of a key is
which row last sent each column, or whose target row fills it. So chains of key changes, swaps and
unsent columns need no special case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replicators.connectors.model.changes import Op
from replicators.connectors.model.schema import TableSchema

MAX_RANGES = 32
MAX_KEYS = 1000
LEAST_GAP = 1000
_INSERT, _UPDATE, _DELETE = int(Op.INSERT), int(Op.UPDATE), int(Op.DELETE)


@dataclass(frozen=True, slots=True)
class Folded:
    """`rows`: the table's columns, `_delete`, `_unsent`, `_origin` as `FoldedBatch` describes;
    `unsent` names the columns that are still unsent somewhere; `truncated_at`: when the first
    TRUNCATE was committed, where the mode asks."""

    rows: pa.Table
    truncate: bool
    unsent: tuple[str, ...]
    has_origins: bool
    truncated_at: datetime | None = None


@nb.njit(cache=True, nogil=True)
def replay(op, new, old, unsent, keys):  # type: ignore[no-untyped-def]
    """Replay n rows over `keys` key codes. `old[r]` is -1 unless the row changed its key;
    `unsent[r, c]` is 1 where the c-th partial column was not sent. Gives per key: its last row (-1:
    untouched), whether it is deleted, whose target row fills what was never sent (-1: nobody's),
    and per partial column the row that sent it (-1: none)."""
    columns = unsent.shape[1]
    last = np.full(keys, -1, np.int64)
    gone = np.zeros(keys, np.uint8)
    origin = np.arange(keys)
    sent_by = np.full((keys, columns), -1, np.int64)
    for r in range(len(op)):
        k = new[r]
        if op[r] == _DELETE:
            last[k] = r
            gone[k] = 1
            origin[k] = -1
            sent_by[k, :] = -1
            continue
        if op[r] == _INSERT:
            origin[k] = -1
        elif old[r] >= 0:
            j = old[r]
            origin[k] = origin[j]
            sent_by[k, :] = sent_by[j, :]
            last[j] = r
            gone[j] = 1
            origin[j] = -1
            sent_by[j, :] = -1
        last[k] = r
        gone[k] = 0
        for c in range(columns):
            if unsent[r, c] == 0:
                sent_by[k, c] = r
    return last, gone, origin, sent_by


def key_codes(columns: list[pa.ChunkedArray]) -> np.ndarray[Any, Any]:
    """Dense codes, equal for equal rows of the key columns."""
    code: np.ndarray[Any, Any] | None = None
    for column in map(one_zero, columns):
        encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        part = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if code is None:
            code = part
        else:
            _, code = np.unique(code * (len(encoded.dictionary) + 1) + part, return_inverse=True)
    assert code is not None
    return code


def one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A key's values in a form that Arrow can compare. Floats lose the negative zero, which is the
    same key at the target. Lists become text, since Arrow does not compare lists."""
    if pa.types.is_list(column.type):
        texts = (None if v is None else repr(v) for v in column.to_pylist())
        return pa.chunked_array([pa.array(texts, pa.string())])
    is_float = pa.types.is_floating(column.type)
    return pc.add(column, pa.scalar(0.0, column.type)) if is_float else column


def unsent_matrix(
    unsent: pa.ChunkedArray, schema: TableSchema
) -> tuple[list[int], np.ndarray[Any, Any]]:
    """The columns that some row did not send, and for these a row x column matrix of 0 and 1.
    `unsent` holds a bit for each column, or NULL."""
    rows = len(unsent)
    bits = unsent.combine_chunks()
    if bits.null_count == rows:
        return [], np.zeros((rows, 0), np.uint8)
    width = (len(schema.columns) + 7) // 8
    flat = np.zeros((rows, width), np.uint8)
    some = bits.is_valid().to_numpy(zero_copy_only=False)
    flat[some] = np.frombuffer(b"".join(bits.filter(pa.array(some)).to_pylist()), np.uint8).reshape(
        -1, width
    )
    matrix = np.unpackbits(flat, axis=1, bitorder="little")[:, : len(schema.columns)]
    partial = np.flatnonzero(matrix.any(axis=0)).tolist()
    return partial, np.ascontiguousarray(matrix[:, partial])


def after_truncate(changes: pa.Table, op: np.ndarray[Any, Any]) -> tuple[pa.Table, bool]:
    """The rows after the last truncate, and whether there was one."""
    barriers = np.flatnonzero(op == int(Op.TRUNCATE))
    if not len(barriers):
        return changes, False
    return changes.slice(int(barriers[-1]) + 1), True


def truncated_at(changes: pa.Table, op: np.ndarray[Any, Any]) -> datetime | None:
    """When the last truncate was committed."""
    barriers = np.flatnonzero(op == int(Op.TRUNCATE))
    return changes.column("_committed_at")[int(barriers[-1])].as_py() if len(barriers) else None


def fold_inserts(changes: pa.Table, schema: TableSchema) -> Folded:
    """For tables without a key: the inserts after the last truncate, as they are."""
    changes, truncate = after_truncate(changes, changes.column("_op").to_numpy())
    inserts = changes.filter(pc.equal(changes.column("_op"), _INSERT))
    rows = inserts.select([c.name for c in schema.columns])
    return Folded(
        _finish(rows, schema, np.zeros(rows.num_rows, bool), None, None),
        truncate,
        (),
        False,
    )


def fold(changes: pa.Table, schema: TableSchema, *, timed: bool = False) -> Folded:
    """Fold `changes` (a change file's columns, ascending `_sequence`, one schema version) by
    `schema.key`. `timed`: as `FoldedBatch.timed` says."""
    op = changes.column("_op").to_numpy()
    emptied_at = truncated_at(changes, op) if timed else None
    changes, truncate = after_truncate(changes, op)
    coded = coded_keys(changes, schema)
    partial, unsent = unsent_matrix(changes.column("_unchanged"), schema)
    state = replay(coded.op, coded.new, coded.old, unsent, coded.total)
    keeps_deleted = timed or not truncate
    found, last = _assemble(
        changes, schema, coded.columns, coded.first, state, partial, truncate, keeps_deleted
    )
    if not timed:
        return found
    times = changes.column("_committed_at").take(pa.array(last))
    rows = found.rows.append_column("_committed_at", times)
    return replace(found, rows=rows, truncated_at=emptied_at)


@dataclass(frozen=True, slots=True)
class CodedKeys:
    """The keys of n change rows as dense codes: `new` is each row's key; `old` is its former key
    where it changed the key, otherwise -1. `columns` hold the keys' values, `first` the place of
    each of the `total` codes in them."""

    op: np.ndarray[Any, Any]
    new: np.ndarray[Any, Any]
    old: np.ndarray[Any, Any]
    columns: list[pa.ChunkedArray]
    first: np.ndarray[Any, Any]
    total: int


def coded_keys(changes: pa.Table, schema: TableSchema) -> CodedKeys:
    """The codes of the keys of all rows, and of the old keys of those that changed them."""
    keys, codes, new, old = key_links(changes, schema)
    total = int(codes.max()) + 1 if len(codes) else 0
    first = np.zeros(total, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    op = changes.column("_op").to_numpy().astype(np.int8)
    return CodedKeys(op, new, old, keys, first, total)


def key_links(
    changes: pa.Table, schema: TableSchema
) -> tuple[list[pa.ChunkedArray], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The key's columns (the rows' keys, then the old keys of rows that changed it), their codes,
    and for each row the code of its key and of its old key (-1: the key did not change)."""
    count = changes.num_rows
    op = changes.column("_op").to_numpy()
    before = changes.column("_before").combine_chunks()
    moved = (op == _UPDATE) & before.is_valid().to_numpy(zero_copy_only=False)
    moved_rows = np.flatnonzero(moved)
    keys = key_columns(changes, before, moved_rows, schema)
    codes = key_codes(keys)
    new, old = codes[:count], np.full(count, -1, np.int64)
    old[moved_rows] = codes[count:]
    old[old == new] = -1
    return keys, codes, new, old


def key_columns(
    changes: pa.Table,
    before: pa.StructArray,
    moved: np.ndarray[Any, Any],
    schema: TableSchema,
) -> list[pa.ChunkedArray]:
    """Per key column the new keys of all rows, then the old keys of the `moved` rows."""
    olds = before.take(pa.array(moved))
    columns = []
    for name in schema.key:
        column = changes.column(name)
        columns.append(pa.chunked_array([*column.chunks, olds.field(name)], type=column.type))
    return columns


def _assemble(
    changes: pa.Table,
    schema: TableSchema,
    keys: list[pa.ChunkedArray],
    first: np.ndarray[Any, Any],
    state: tuple[np.ndarray[Any, Any], ...],
    partial: list[int],
    truncate: bool,
    keeps_deleted: bool,
) -> tuple[Folded, np.ndarray[Any, Any]]:
    """The folded rows, and the number of each one's last change."""
    last, gone, origin, sent_by = state
    kept = np.flatnonzero((last >= 0) & (gone == 0))
    deleted = np.flatnonzero((last >= 0) & (gone == 1)) if keeps_deleted else np.zeros(0, np.int64)
    places = np.concatenate([kept, deleted])
    key_rows = {n: k.take(pa.array(first[places])) for n, k in zip(schema.key, keys, strict=True)}
    blank = np.zeros(len(deleted), np.int64)
    sources = np.concatenate([last[kept], blank])
    is_delete = np.concatenate([np.zeros(len(kept), bool), np.ones(len(deleted), bool)])
    arrays: dict[str, pa.ChunkedArray] = {}
    missing = np.zeros((len(places), len(partial)), bool)
    for position, column in enumerate(schema.columns):
        if column.name in key_rows:
            arrays[column.name] = key_rows[column.name]
            continue
        rows, absent = sources, is_delete
        if position in partial:
            at = partial.index(position)
            rows = np.concatenate([sent_by[kept, at], blank])
            missing[: len(kept), at] = rows[: len(kept)] < 0
            absent = is_delete | (rows < 0)
        arrays[column.name] = changes.column(column.name).take(pa.array(rows, mask=absent))
    names = tuple(schema.columns[p].name for i, p in enumerate(partial) if missing[:, i].any())
    origins = np.where(missing.any(axis=1) & (origin[places] != places), origin[places], -1)
    table = pa.table(arrays)
    rows_out = _finish(table, schema, is_delete, bitmap(missing, partial, schema), None)
    has_origins = bool((origins >= 0).any())
    struct = origin_column(keys, first, origins, schema)
    at = rows_out.schema.get_field_index("_origin")
    rows_out = rows_out.set_column(at, "_origin", struct)
    return Folded(rows_out, truncate, names, has_origins), last[places]


def bitmap(missing: np.ndarray[Any, Any], partial: list[int], schema: TableSchema) -> pa.Array:
    """Per row the `_unsent` bytes, NULL where no value is missing."""
    some = missing.any(axis=1)
    full = np.zeros((int(some.sum()), len(schema.columns)), np.uint8)
    full[:, partial] = missing[some]
    packed = np.packbits(full, axis=1, bitorder="little")
    values = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(packed.shape[1]), len(packed), [None, pa.py_buffer(packed.tobytes())]
    ).cast(pa.binary())
    index = np.cumsum(some) - 1
    return values.take(pa.array(index, mask=~some))


def origin_column(
    keys: list[pa.ChunkedArray],
    first: np.ndarray[Any, Any],
    origins: np.ndarray[Any, Any],
    schema: TableSchema,
) -> pa.StructArray:
    """Per row the key whose target row fills it, NULL for its own key. `origins` are key codes, -1
    for none."""
    absent = origins < 0
    rows = pa.array(first[np.where(absent, 0, origins)] if len(first) else origins, mask=absent)
    arrays = [k.take(rows).combine_chunks() for k in keys]
    return pa.StructArray.from_arrays(arrays, names=list(schema.key), mask=pa.array(absent))


def _finish(
    rows: pa.Table,
    schema: TableSchema,
    is_delete: np.ndarray[Any, Any],
    unsent: pa.Array | None,
    origin: pa.StructArray | None,
) -> pa.Table:
    """Add the three columns that say what a row is."""
    count = rows.num_rows
    rows = rows.cast(schema.arrow_schema())
    key = pa.struct(
        [schema.arrow_schema().field(n) for n in schema.key] or [pa.field("_", pa.bool_())]
    )
    rows = rows.append_column("_delete", pa.array(is_delete, pa.bool_()))
    rows = rows.append_column(
        "_unsent", unsent if unsent is not None else pa.nulls(count, pa.binary())
    )
    return rows.append_column("_origin", origin if origin is not None else pa.nulls(count, key))


def key_ranges(
    folded: Folded, schema: TableSchema, limit: int = MAX_RANGES
) -> list[tuple[Any, Any]]:
    """At most `limit` inclusive intervals that cover the first key column of all rows and origins.
    Empty where intervals can't prune (no rows, NULLs, floats)."""
    ordered = _first_keys(folded, schema)
    if ordered is None:
        return []
    starts = _cuts(ordered, limit)
    ends = [*[s - 1 for s in starts[1:]], len(ordered) - 1]
    lows, highs = (
        ordered.take(pa.array(starts)).to_pylist(),
        ordered.take(pa.array(ends)).to_pylist(),
    )
    return list(zip(lows, highs, strict=True))


def few_keys(folded: Folded, schema: TableSchema, limit: int = MAX_KEYS) -> list[Any]:
    """The values of the first key column of all rows and origins, if there are at most `limit` and
    they can prune."""
    ordered = _first_keys(folded, schema)
    return [] if ordered is None or len(ordered) > limit else list(ordered.to_pylist())


def _first_keys(folded: Folded, schema: TableSchema) -> pa.Array | None:
    """The distinct values of the first key column, ascending; None where they can't prune."""
    if not schema.key or not folded.rows.num_rows:
        return None
    name = schema.key[0]
    if pa.types.is_list(folded.rows.column(name).type):
        return None
    values = folded.rows.column(name).combine_chunks()
    if folded.has_origins:
        origins = folded.rows.column("_origin").combine_chunks()
        more = origins.filter(origins.is_valid()).field(name)
        values = pa.concat_arrays([values, more])
    if values.null_count or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type):
        return None
    distinct = pc.unique(values)
    return distinct.take(pc.array_sort_indices(distinct))


def _cuts(ordered: pa.Array, limit: int) -> list[int]:
    """Where intervals start. Numbers are cut at their widest gaps: a narrow gap skips no file, but
    costs a comparison for each row that is read. Other values are cut into groups of equal size."""
    count = len(ordered)
    if pa.types.is_integer(ordered.type):
        gaps = np.diff(ordered.to_numpy().astype(np.float64))
        wide = np.argsort(gaps)[::-1][: limit - 1]
        return [0, *sorted((wide[gaps[wide] > LEAST_GAP] + 1).tolist())]
    groups = min(limit, count)
    return sorted({i * count // groups for i in range(groups)})


def join_ranges(
    parts: list[list[tuple[Any, Any]]], limit: int = MAX_RANGES
) -> list[tuple[Any, Any]]:
    """The intervals of several foldings of one merge, joined to at most `limit`. Empty as soon as
    one part can't prune."""
    if not parts or any(not p for p in parts):
        return []
    merged: list[tuple[Any, Any]] = []
    for low, high in sorted(r for p in parts for r in p):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    while len(merged) > limit:
        merged = [
            (a[0], b[1]) for a, b in zip(merged[::2], [*merged[1::2], merged[-1]], strict=False)
        ]
    return merged
