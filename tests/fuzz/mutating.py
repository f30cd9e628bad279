"""Compiled parts that both formats share: random numbers, mutations of bytes, and guarded
memory."""

# ruff: noqa: C901, SIM110 - compiled code branches by case, and numba has no all()

from __future__ import annotations

import numpy as np
from numba import njit

# What became of a mutated event. A violation is one of the last three.
(UNCHANGED, FRAME, CHECKSUM, INDEX, NO_ROWS, DAMAGED, VALUE, ACCEPTED) = range(8)
NAMES = (
    "unchanged", "refused: frame", "refused: checksum", "refused: index",
    "no rows of the table any more",
    "refused: damaged rows", "refused: a value", "decoded",
)  # fmt: skip
UNSEEN, OVERRUN, DISORDER = -1, -2, -3
VIOLATIONS = {
    UNSEEN: "a wrong checksum was not seen",
    OVERRUN: "bytes behind a buffer were written",
    DISORDER: "offsets of texts go backwards or past their characters",
}
ALIGNMENT = 64
# Loops may write a word past a buffer, as production's own alignment lets them; nothing beyond it.
SLACK, GUARD, MARK = 64, 128, 0xA5
EXTREMES = np.array([0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF], np.uint8)


@njit
def draw(rng):
    """The next number of xorshift64*, 31 bits of it."""
    x = rng[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    rng[0] = x
    return np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33))


@njit
def mutate(out, o, size, first, rng):
    """Change the event of `size` bytes at `o`, which has room for 64 more, from its byte `first`
    on: its new size."""
    again = draw(rng) % 4
    for _ in range(1 if again < 2 else again):
        if size <= first:
            return size
        at = o + first + draw(rng) % (size - first)
        act = draw(rng) % 16
        if act < 5:
            out[at] ^= np.uint8(1 << (draw(rng) % 8))
        elif act < 8:
            out[at] = EXTREMES[draw(rng) % len(EXTREMES)]
        elif act < 11:
            out[at] = np.uint8(draw(rng) & 0xFF)
        elif act < 12:
            for i in range(min(np.int64(4), o + size - at)):
                out[at + i] = np.uint8(draw(rng) & 0xFF)
        elif act < 14:
            cut = min(1 + draw(rng) % 8, o + size - at)
            for i in range(at, o + size - cut):
                out[i] = out[i + cut]
            size -= cut
        elif act < 15:
            more = min(1 + draw(rng) % 8, o + size - at)
            for i in range(o + size - 1, at - 1, -1):
                out[i + more] = out[i]
            size += more
        else:
            size = at - o
    return size


@njit
def is_same(a, b, at, size):
    """Whether the event at `at` of `a` is the one at the beginning of `b`."""
    for i in range(size):
        if a[at + i] != b[i]:
            return False
    return True


@njit
def place(used, size, starts, n):
    """A buffer of `size` bytes with a guard behind it: (where the next begins, buffers so far)."""
    starts[n, 0], starts[n, 1] = used, used + size
    room = (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return used + room + SLACK + GUARD, n + 1


@njit
def put_guards(a8, starts, n):
    """Mark what nobody may write."""
    for i in range(n):
        end = (starts[i, 1] + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT + SLACK
        for j in range(end, end + GUARD):
            a8[j] = MARK


@njit
def are_guards_whole(a8, starts, n):
    for i in range(n):
        end = (starts[i, 1] + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT + SLACK
        for j in range(end, end + GUARD):
            if a8[j] != MARK:
                return False
    return True


@njit
def are_offsets_ordered(a32, at, count, most):
    """Whether Arrow may take the offsets of `count` texts as they are."""
    if a32[at] != 0:
        return False
    for i in range(count):
        if a32[at + i + 1] < a32[at + i]:
            return False
    return a32[at + count] <= most
