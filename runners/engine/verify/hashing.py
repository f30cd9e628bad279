"""Hashes of rows for comparing both sides: 64 bits of the key, which choose a bucket, and 64 bits
of the whole row. Values are tagged by type and length, and NULL is apart from empty. Equal values
in the neutral types have equal hashes, however Arrow holds them. Two rows of one key that differ
have the same hash with a chance of 1 in 2^64. Knows no file, no Spark.

The mixing of words is the finaliser of MurmurHash3 (Austin Appleby, public domain).
"""

from __future__ import annotations

import zlib
from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa

from runners.engine.fold.row_hash import Values, values_of

Hashes = np.ndarray[Any, Any]
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_P1, _P2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_NULL = np.uint64(0xA0761D6478BD642F)
_33, _8 = np.uint64(33), np.uint64(8)
KEY_SEED, ROW_SEED = 0x6B6579, 0x726F77


@nb.njit(cache=True, nogil=True, inline="always")
def _mixed(x):  # type: ignore[no-untyped-def]
    x ^= x >> _33
    x *= _M1
    x ^= x >> _33
    x *= _M2
    return x ^ (x >> _33)


@nb.njit(cache=True, nogil=True)
def _words(valid, words, width, seed, hashes):  # type: ignore[no-untyped-def]
    """Add values of `width` words of eight bytes each."""
    for r in range(len(valid)):
        h = hashes[r] ^ seed
        if valid[r]:
            for i in range(width):
                h = _mixed((h + words[r * width + i]) * _P1 + _P2)
        else:
            h = _mixed((h + _NULL) * _P2)
        hashes[r] = h


@nb.njit(cache=True, nogil=True)
def _bytes(valid, ends, values, seed, hashes):  # type: ignore[no-untyped-def]
    """Add values of any length, the length first."""
    start = np.int64(0)
    for r in range(len(valid)):
        h, end = hashes[r] ^ seed, ends[r]
        if valid[r]:
            h = _mixed((h + np.uint64(end - start)) * _P1 + _P2)
            at = start
            while at + 8 <= end:
                word = (
                    np.uint64(values[at])
                    | np.uint64(values[at + 1]) << np.uint64(8)
                    | np.uint64(values[at + 2]) << np.uint64(16)
                    | np.uint64(values[at + 3]) << np.uint64(24)
                    | np.uint64(values[at + 4]) << np.uint64(32)
                    | np.uint64(values[at + 5]) << np.uint64(40)
                    | np.uint64(values[at + 6]) << np.uint64(48)
                    | np.uint64(values[at + 7]) << np.uint64(56)
                )
                h = _mixed((h ^ word) * _P1 + _P2)
                at += 8
            word = np.uint64(0)
            for i in range(end - at):
                word |= np.uint64(values[at + i]) << np.uint64(8 * i)
            h = _mixed((h ^ word) * _P2 + _P1)
        else:
            h = _mixed((h + _NULL) * _P2)
        hashes[r] = h
        start = end


@nb.njit(cache=True, nogil=True)
def unmatched(ours, theirs):  # type: ignore[no-untyped-def]
    """The hashes that two sorted lists do not have equally often: each once, with how often the
    first and the second has it."""
    found = np.empty((len(ours) + len(theirs), 3), np.uint64)
    n, i, j = 0, 0, 0
    while i < len(ours) or j < len(theirs):
        is_ours = j == len(theirs) or (i < len(ours) and ours[i] <= theirs[j])
        value = ours[i] if is_ours else theirs[j]
        a, b = i, j
        while i < len(ours) and ours[i] == value:
            i += 1
        while j < len(theirs) and theirs[j] == value:
            j += 1
        if i - a != j - b:
            found[n, 0], found[n, 1], found[n, 2] = value, i - a, j - b
            n += 1
    return found[:n].copy()


def _add(hashes: Hashes, name: str, column: Values) -> None:
    seed = np.uint64(zlib.crc32(name.encode()) << 32 | zlib.crc32(column.tag))
    size = len(column.values)
    rows = len(column.valid)
    width = size // rows if rows else 0
    is_fixed = column.tag[:1] in b"ifntwz" and width % 8 == 0 and width * rows == size
    if is_fixed:
        _words(column.valid, column.values.view(np.uint64), width // 8, seed, hashes)
    else:
        _bytes(column.valid, column.ends, column.values, seed, hashes)


def hashes(batch: pa.RecordBatch, names: list[str], seed: int) -> Hashes:
    """A hash of these columns for each row, as unsigned words."""
    found = np.full(batch.num_rows, seed, np.uint64)
    for name in names:
        if batch.num_rows:
            _add(found, name, values_of(batch.column(name)))
    return found


def warm() -> None:
    """Compile the loops, or load them from numba's cache."""
    batch = pa.record_batch({"n": pa.array([1], pa.int64()), "t": pa.array(["a"])})
    found = np.sort(hashes(batch, ["n", "t"], KEY_SEED))
    unmatched(found, found)
