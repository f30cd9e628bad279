"""Which partition a key belongs to: the choice of Java's default partitioner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

Numbers = np.ndarray[Any, np.dtype[Any]]
_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


@njit(cache=True)
def _hashes(data: Numbers, offsets: Numbers) -> Numbers:
    """Murmur2 of each value, as 31 bits."""
    found = np.empty(len(offsets) - 1, np.int64)
    for row in range(len(found)):
        at, end = offsets[row], offsets[row + 1]
        length = end - at
        h = (_SEED ^ length) & _MASK
        while end - at >= 4:
            k = (
                np.int64(data[at])
                | (np.int64(data[at + 1]) << 8)
                | (np.int64(data[at + 2]) << 16)
                | (np.int64(data[at + 3]) << 24)
            )
            k = _product(k)
            k = _product(k ^ (k >> 24))
            h = _product(h) ^ k
            at += 4
        left = end - at
        if left == 3:
            h ^= np.int64(data[at + 2]) << 16
        if left >= 2:
            h ^= np.int64(data[at + 1]) << 8
        if left >= 1:
            h = _product(h ^ np.int64(data[at]))
        h = _product(h ^ (h >> 13))
        found[row] = (h ^ (h >> 15)) & 0x7FFFFFFF
    return found


@njit(cache=True)
def _product(value: int) -> int:
    """Value times M, as 32 bits; no step is longer than 63 bits."""
    low = (value & 0xFFFF) * _M
    high = ((value >> 16) * (_M & 0xFFFF)) << 16
    return (low + high) & _MASK


def partitions(keys: pa.Array, count: int) -> Numbers:
    """The partition of each key. Rows without a key get 0."""
    filled = keys.cast(pa.large_binary()).fill_null(b"")
    if len(filled) == 0:
        return np.empty(0, np.int32)
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    values = np.frombuffer(data, np.uint8) if data is not None and data.size else _EMPTY
    found: Numbers = (_hashes(values, ends) % count).astype(np.int32)
    found[keys.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


_EMPTY = np.empty(0, np.uint8)
