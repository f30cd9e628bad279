"""Compiled loops that write the rows of a binary COPY, one column after the other.

`pos` has the place of each row's next byte in `out`; each loop writes its column's value there and
moves it on. `valid` is empty where a column has no NULL. Formats: PostgreSQL's documentation of
COPY, "Binary Format"; each type's `*_recv`. Callers make `out` large enough.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

ADDRESS = types.intp
copy_bytes = types.ExternalFunction("memcpy", ADDRESS(ADDRESS, ADDRESS, ADDRESS))

BASE = np.uint64(10_000)
LOW = np.uint64(0xFFFF_FFFF)
SHIFT = np.uint64(32)
LIMBS = 5
LARGEST_FAST = 2**53


@njit
def put_be2(out, p, v):
    out[p] = (v >> 8) & 255
    out[p + 1] = v & 255


@njit
def put_be4(out, p, v):
    out[p] = (v >> 24) & 255
    out[p + 1] = (v >> 16) & 255
    out[p + 2] = (v >> 8) & 255
    out[p + 3] = v & 255


@njit
def put_be8(out, p, v):
    put_be4(out, p, v >> 32)
    put_be4(out, p + 4, v)


@njit
def is_null(out, pos, valid, r):
    """Whether the row's value is NULL; then it is written."""
    if len(valid) and not valid[r]:
        p = pos[r]
        put_be4(out, p, -1)
        pos[r] = p + 4
        return True
    return False


@njit(cache=True, nogil=True)
def put_count(out, pos, count):
    """The number of columns, at the begin of each row."""
    for r in range(len(pos)):
        p = pos[r]
        put_be2(out, p, count)
        pos[r] = p + 2


@njit(cache=True, nogil=True)
def put1(out, pos, valid, data):
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            put_be4(out, p, 1)
            out[p + 4] = data[r]
            pos[r] = p + 5


@njit(cache=True, nogil=True)
def put2(out, pos, valid, data):
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            put_be4(out, p, 2)
            put_be2(out, p + 4, np.int64(data[r]))
            pos[r] = p + 6


@njit(cache=True, nogil=True)
def put4(out, pos, valid, data, less):
    """`less` is taken away from each value."""
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            put_be4(out, p, 4)
            put_be4(out, p + 4, np.int64(data[r]) - less)
            pos[r] = p + 8


@njit(cache=True, nogil=True)
def put8(out, pos, valid, data, less):
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            put_be4(out, p, 8)
            put_be8(out, p + 4, data[r] - less)
            pos[r] = p + 12


@njit(cache=True, nogil=True)
def put_chars(out, pos, valid, offsets, data, version):
    """Bytes as they are; `version` is a byte before them (-1: none)."""
    to, of = out.ctypes.data, data.ctypes.data
    extra = 1 if version >= 0 else 0
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            size = np.int64(offsets[r + 1]) - offsets[r]
            put_be4(out, p, size + extra)
            p += 4
            if extra:
                out[p] = version
                p += 1
            copy_bytes(to + p, of + np.int64(offsets[r]), size)
            pos[r] = p + size


@njit
def hex_digit(c):
    if 48 <= c <= 57:
        return c - 48
    if 97 <= c <= 102:
        return c - 87
    if 65 <= c <= 70:
        return c - 55
    return -1


@njit(cache=True, nogil=True)
def put_uuid(out, pos, valid, offsets, data):
    """UUIDs from 36 characters. Returns the first row that holds something else, or -1."""
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            put_be4(out, p, 16)
            p += 4
            q = np.int64(offsets[r])
            if np.int64(offsets[r + 1]) - q != 36:
                return r
            for i in range(16):
                if i == 4 or i == 6 or i == 8 or i == 10:  # noqa: PLR1714, SIM109
                    if data[q] != 45:
                        return r
                    q += 1
                high, low = hex_digit(np.int64(data[q])), hex_digit(np.int64(data[q + 1]))
                if high < 0 or low < 0:
                    return r
                out[p + i] = high << 4 | low
                q += 2
            pos[r] = p + 16
    return -1


@njit(cache=True, nogil=True)
def put_decimal(out, pos, valid, words, whole, parts, factor, scale):
    """128-bit decimals as `whole` + `parts` digits of base 10,000. `factor` makes the last digit
    end at the scale's multiple of four. The server drops zeros at both ends."""
    groups = whole + parts
    limbs = np.empty(LIMBS, np.uint64)
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            low, high = words[2 * r], np.int64(words[2 * r + 1])
            is_negative = high < 0
            put_be4(out, p, 8 + 2 * groups)
            put_be2(out, p + 4, groups)
            put_be2(out, p + 6, whole - 1)
            put_be2(out, p + 8, 0x4000 if is_negative else 0)
            put_be2(out, p + 10, scale)
            p += 12
            pos[r] = p + 2 * groups
            top = np.uint64(high)
            if is_negative:
                low = ~low + np.uint64(1)
                top = ~top + np.uint64(1 if low == 0 else 0)
            if top == 0 and low < np.uint64(LARGEST_FAST):
                rest = low * np.uint64(factor)
                for i in range(groups - 1, -1, -1):
                    quotient = rest // BASE
                    put_be2(out, p + 2 * i, np.int64(rest - quotient * BASE))
                    rest = quotient
                continue
            limbs[0], limbs[1] = low & LOW, low >> SHIFT
            limbs[2], limbs[3], limbs[4] = top & LOW, top >> SHIFT, 0
            carry = np.uint64(0)
            for i in range(LIMBS):
                v = limbs[i] * np.uint64(factor) + carry
                limbs[i], carry = v & LOW, v >> SHIFT
            for g in range(groups - 1, -1, -1):
                rest = np.uint64(0)
                for i in range(LIMBS - 1, -1, -1):
                    v = (rest << SHIFT) | limbs[i]
                    limbs[i] = v // BASE
                    rest = v - limbs[i] * BASE
                put_be2(out, p + 2 * g, np.int64(rest))


@njit(cache=True, nogil=True)
def put_array(out, pos, valid, offsets, items, item_at, oid, has_nulls):
    """One-dimensional arrays; `items` are written already, item i from item_at[i]."""
    to, of = out.ctypes.data, items.ctypes.data
    for r in range(len(pos)):
        if not is_null(out, pos, valid, r):
            p = pos[r]
            first, end = np.int64(offsets[r]), np.int64(offsets[r + 1])
            if first == end:
                put_be4(out, p, 12)
                put_be8(out, p + 4, 0)
                put_be4(out, p + 12, oid)
                pos[r] = p + 16
                continue
            size = item_at[end] - item_at[first]
            put_be4(out, p, 20 + size)
            put_be4(out, p + 4, 1)
            put_be4(out, p + 8, has_nulls)
            put_be4(out, p + 12, oid)
            put_be4(out, p + 16, end - first)
            put_be4(out, p + 20, 1)
            copy_bytes(to + p + 24, of + item_at[first], size)
            pos[r] = p + 24 + size
