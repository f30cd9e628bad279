"""Compiled loops that write Avro's binary form, one field after the other.

`pos` has the place of each row's next byte; each loop moves it on. Without `write` a loop only
does that: with zeros at first, `pos` then has the sizes. `state` says what a row gets: nothing
(SKIP), the null of a union (NULL), the value as the second type of a union (SOME), or the value
alone (BARE). Format: Avro's specification, "Binary Encoding".
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

SKIP, NULL, SOME, BARE = range(4)
ADDRESS = types.intp
copy_bytes = types.ExternalFunction("memcpy", ADDRESS(ADDRESS, ADDRESS, ADDRESS))
LOW = np.uint64(127)
MORE = np.uint64(128)
SEVEN = np.uint64(7)


@njit
def put_varint(out, p, v, write):
    """A number in zigzag form, 7 bits a byte; returns the place after it."""
    z = np.uint64((v << 1) ^ (v >> 63))
    while z >= MORE:
        if write:
            out[p] = np.uint8((z & LOW) | MORE)
        z >>= SEVEN
        p += 1
    if write:
        out[p] = np.uint8(z)
    return p + 1


@njit
def begin(out, p, state, write):
    """The number of a union's type, where there is one; returns the place after it."""
    if state == BARE:
        return p
    if write:
        out[p] = 2 if state == SOME else 0
    return p + 1


@njit(cache=True, nogil=True)
def put_marks(out, pos, state, write):
    """Whether a record follows."""
    for r in range(len(pos)):
        if state[r] != SKIP:
            pos[r] = begin(out, pos[r], state[r], write)


@njit(cache=True, nogil=True)
def put_same(out, pos, state, data, write):
    """The same bytes in every row."""
    for r in range(len(pos)):
        if state[r] != SKIP:
            p = pos[r]
            if write:
                for i in range(len(data)):
                    out[p + i] = data[i]
            pos[r] = p + len(data)


@njit(cache=True, nogil=True)
def put_longs(out, pos, state, data, write):
    """Integers: `int` and `long`."""
    for r in range(len(pos)):
        if state[r] != SKIP:
            p = begin(out, pos[r], state[r], write)
            if state[r] != NULL:
                p = put_varint(out, p, data[r], write)
            pos[r] = p


@njit(cache=True, nogil=True)
def put_fixed(out, pos, state, data, width, write):
    """Values of `width` bytes as they are: `float`, `double` and `boolean`."""
    for r in range(len(pos)):
        if state[r] != SKIP:
            p = begin(out, pos[r], state[r], write)
            if state[r] != NULL:
                if write:
                    for i in range(width):
                        out[p + i] = data[r * width + i]
                p += width
            pos[r] = p


@njit(cache=True, nogil=True)
def put_bytes(out, pos, state, offsets, data, write):
    """`string` and `bytes`: a size, then the bytes."""
    to, of = out.ctypes.data, data.ctypes.data
    for r in range(len(pos)):
        if state[r] != SKIP:
            p = begin(out, pos[r], state[r], write)
            if state[r] != NULL:
                size = offsets[r + 1] - offsets[r]
                p = put_varint(out, p, size, write)
                if write:
                    copy_bytes(to + p, of + offsets[r], size)
                p += size
            pos[r] = p


@njit(cache=True, nogil=True)
def put_decimals(out, pos, state, data, write):
    """Numbers of 16 bytes, the lowest first, as `decimal`: a size, then the fewest bytes that show
    the number, the highest first."""
    for r in range(len(pos)):
        if state[r] != SKIP:
            p = begin(out, pos[r], state[r], write)
            if state[r] != NULL:
                at = 16 * r
                last = 15
                fill = 255 if data[at + 15] >= 128 else 0
                while last > 0 and data[at + last] == fill:
                    if (data[at + last - 1] >= 128) != (fill == 255):
                        break
                    last -= 1
                p = put_varint(out, p, last + 1, write)
                if write:
                    for i in range(last + 1):
                        out[p + i] = data[at + last - i]
                p += last + 1
            pos[r] = p


@njit(cache=True, nogil=True)
def put_lists(out, pos, state, starts, offsets, items, write):
    """`array`: one block with all items, whose bytes are given. `starts`: the first item of each
    row."""
    to, of = out.ctypes.data, items.ctypes.data
    for r in range(len(pos)):
        if state[r] != SKIP:
            p = begin(out, pos[r], state[r], write)
            if state[r] != NULL:
                count = starts[r + 1] - starts[r]
                if count:
                    p = put_varint(out, p, count, write)
                    first = offsets[starts[r]]
                    size = offsets[starts[r + 1]] - first
                    if write:
                        copy_bytes(to + p, of + first, size)
                    p += size
                if write:
                    out[p] = 0
                p += 1
            pos[r] = p
