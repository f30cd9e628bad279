"""A digest for each row of a table without a key (CORRECTNESS 12): BLAKE2b with 128 bits over the
row's columns in the order of their names. NULLs are left out. Each value comes with its column's
name, a tag of its type and its length.

So these change no digest: the order of columns, an added column, an integer or a float that becomes
wider. A value has the same digest whether it came by snapshot or by log. Knows no file, no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DIGEST_BYTES = 16
_IV = np.array(
    [0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
     0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179],
    np.uint64,
)  # fmt: skip
_SIGMA = np.array(
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
     [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
     [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
     [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
     [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
     [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
     [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
     [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
     [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
     [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
     [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
     [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3]],
    np.int64,
)  # fmt: skip
_PARAMETERS = np.uint64(0x01010000 ^ DIGEST_BYTES)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_8, _16, _24, _32, _40, _48, _56, _63 = (np.uint64(n) for n in (8, 16, 24, 32, 40, 48, 56, 63))
_1 = np.uint64(1)


@nb.njit(cache=True, nogil=True, inline="always")
def _mix(v, a, b, c, d, x, y):  # type: ignore[no-untyped-def]
    v[a] = v[a] + v[b] + x
    w = v[d] ^ v[a]
    v[d] = (w >> _32) | (w << _32)
    v[c] = v[c] + v[d]
    w = v[b] ^ v[c]
    v[b] = (w >> _24) | (w << _40)
    v[a] = v[a] + v[b] + y
    w = v[d] ^ v[a]
    v[d] = (w >> _16) | (w << _48)
    v[c] = v[c] + v[d]
    w = v[b] ^ v[c]
    v[b] = (w >> _63) | (w << _1)


@nb.njit(cache=True, nogil=True)
def _compress(h, m, v, length, is_last):  # type: ignore[no-untyped-def]
    for i in range(8):
        v[i] = h[i]
        v[i + 8] = _IV[i]
    v[12] ^= np.uint64(length)
    if is_last:
        v[14] ^= _ALL
    for r in range(12):
        s = _SIGMA[r]
        _mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]])
        _mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]])
        _mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]])
        _mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]])
        _mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]])
        _mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]])
        _mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]])
        _mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]])
    for i in range(8):
        h[i] ^= v[i] ^ v[i + 8]


@nb.njit(cache=True, nogil=True)
def _digests(data, ends, out):  # type: ignore[no-untyped-def]
    """The digest of each row. Row r ends at `ends[r]` in `data` and begins where the row before
    ends."""
    h, m, v = np.zeros(8, np.uint64), np.zeros(16, np.uint64), np.zeros(16, np.uint64)
    start = 0
    for r in range(len(ends)):
        size = ends[r] - start
        for i in range(8):
            h[i] = _IV[i]
        h[0] ^= _PARAMETERS
        done = 0
        while True:
            left = min(128, size - done)
            at = start + done
            for i in range(16):
                word = np.uint64(0)
                for j in range(8):
                    if i * 8 + j < left:
                        word |= np.uint64(data[at + i * 8 + j]) << np.uint64(8 * j)
                m[i] = word
            done += left
            _compress(h, m, v, done, done == size)
            if done == size:
                break
        out[r, 0], out[r, 1] = h[0], h[1]
        start = ends[r]


@nb.njit(cache=True, nogil=True)
def _measure(valid, ends, head, sizes):  # type: ignore[no-untyped-def]
    """Add the size of a column's value to each row's size: nothing where the value is NULL."""
    start = 0
    for r in range(len(ends)):
        if valid[r]:
            sizes[r] += head + 4 + ends[r] - start
        start = ends[r]


@nb.njit(cache=True, nogil=True)
def _put(valid, ends, values, head, at, out):  # type: ignore[no-untyped-def]
    """Write a column's values at each row's present place (`at`): head, length, bytes."""
    start = 0
    for r in range(len(ends)):
        if valid[r]:
            p, size = at[r], ends[r] - start
            out[p : p + len(head)] = head
            p += len(head)
            for j in range(4):
                out[p + j] = (size >> (8 * j)) & 255
            p += 4
            out[p : p + size] = values[start : start + size]
            at[r] = p + size
        start = ends[r]


@nb.njit(cache=True, nogil=True)
def _join_items(valid, ends, values, list_ends, out, out_ends):  # type: ignore[no-untyped-def]
    """The bytes of lists: for each item 0, or 1 with its length and its bytes."""
    p, item, start = 0, 0, 0
    for r in range(len(list_ends)):
        while item < list_ends[r]:
            out[p] = valid[item]
            p += 1
            size = ends[item] - start
            if valid[item]:
                for j in range(4):
                    out[p + j] = (size >> (8 * j)) & 255
                out[p + 4 : p + 4 + size] = values[start : start + size]
                p += 4 + size
            start = ends[item]
            item += 1
        out_ends[r] = p


@dataclass(frozen=True, slots=True)
class Values:
    """A column's values one after the other: a tag of the type, which values are not NULL, and
    where each ends."""

    tag: bytes
    valid: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


def _fixed(tag: bytes, array: pa.Array, numbers: np.ndarray[Any, Any]) -> Values:
    raw = np.ascontiguousarray(numbers)
    ends = np.arange(1, len(array) + 1, dtype=np.int64) * raw.dtype.itemsize
    return Values(tag, _valid(array), ends, raw.view(np.uint8))


def _valid(array: pa.Array) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = array.is_valid().to_numpy(zero_copy_only=False)
    return found.astype(np.uint8)


def _floats(array: pa.Array) -> Values:
    numbers = pc.fill_null(array, 0).cast(pa.float64()).to_numpy().copy()
    numbers[np.isnan(numbers)] = np.nan
    return _fixed(b"f", array, numbers)


def _decimals(array: pa.Array) -> Values:
    raw = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * 16 :][: len(array) * 16]
    return _fixed(b"n" + bytes([array.type.scale]), array, raw.view(np.dtype("V16")))


def _texts(tag: bytes, array: pa.Array) -> Values:
    _, offsets, data = array.buffers()
    wide = np.int64 if pa.types.is_large_string(array.type) else np.int32
    ends = np.frombuffer(offsets, wide)[array.offset :][: len(array) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return Values(tag, _valid(array), ends[1:] - ends[0], raw[ends[0] : ends[-1]])


def _lists(array: pa.Array) -> Values:
    flat = array.flatten()
    items = values_of(flat if len(flat) else pa.nulls(1, flat.type))
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    out = np.zeros(len(items.values) + 5 * len(items.ends), np.uint8)
    ends = np.zeros(len(array), np.int64)
    _join_items(items.valid, items.ends, items.values, np.cumsum(sizes), out, ends)
    used = int(ends[-1]) if len(ends) else 0
    return Values(b"a" + items.tag, _valid(array), ends, out[:used])


_MICROSECONDS = {"time64[us]": b"t", "timestamp[us]": b"w", "timestamp[us, tz=UTC]": b"z"}


def values_of(array: pa.Array) -> Values:
    """The column's values; ValueError for a type that no column has."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return _fixed(b"o", array, pc.fill_null(array.cast(pa.int8()), 0).to_numpy())
    if pa.types.is_integer(kind):
        return _fixed(b"i", array, pc.fill_null(array.cast(pa.int64()), 0).to_numpy())
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(b"s", array)
    if pa.types.is_binary(kind):
        return _texts(b"x", array)
    if pa.types.is_date32(kind):
        return _fixed(b"d", array, pc.fill_null(array.cast(pa.int32()), 0).to_numpy())
    if str(kind) in _MICROSECONDS:
        numbers = pc.fill_null(array.cast(pa.int64()), 0).to_numpy()
        return _fixed(_MICROSECONDS[str(kind)], array, numbers)
    if pa.types.is_list(kind):
        return _lists(array)
    raise ValueError(f"no digest for {kind}")


def _batch_hashes(batch: pa.RecordBatch, names: list[str]) -> pa.Array:
    columns, sizes = [], np.zeros(batch.num_rows, np.int64)
    for name in names:
        column = values_of(batch.column(name))
        reported = name.encode()
        head = len(reported).to_bytes(4, "little") + reported + column.tag
        columns.append((column, np.frombuffer(head, np.uint8)))
        _measure(column.valid, column.ends, len(head), sizes)
    ends = np.cumsum(sizes)
    out, at = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8), ends - sizes
    for column, head_bytes in columns:
        _put(column.valid, column.ends, column.values, head_bytes, at, out)
    digests = np.zeros((batch.num_rows, 2), np.uint64)
    _digests(out, ends, digests)
    offsets = np.arange(batch.num_rows + 1, dtype=np.int32) * DIGEST_BYTES
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digests.tobytes())]
    return pa.Array.from_buffers(pa.binary(), batch.num_rows, buffers)


def row_hashes(rows: pa.Table, columns: list[str]) -> pa.ChunkedArray:
    """The digest of each row's `columns`, 16 bytes each; other columns of `rows` do not count."""
    names = sorted(columns, key=str.encode)
    picked = rows.select(names)
    chunks = [_batch_hashes(b, names) for b in picked.to_batches() if b.num_rows]
    return pa.chunked_array(chunks, pa.binary())
