"""How far the log is decoded without a gap (CORRECTNESS 2), and where whole transactions end before
that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicators.connectors.model.changes import last_sequence
from runners.engine.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Frontier:
    """Up to where everything is decoded: the number of the last segment before the first undecoded
    one that ends at a transaction's end, and the numbers of all such segments (a merge may end only
    at one of them)."""

    segment: int
    closed: tuple[int, ...]

    @property
    def sequence(self) -> int:
        return last_sequence(self.segment)


def frontier(segments: Sequence[tuple[int, bool, bool]], last_known: int) -> Frontier:
    """From (number, is_closed, is_decoded) in order. Without any kept segment everything up to
    `last_known` is done."""
    if not segments:
        return Frontier(last_known, ())
    reached, closed = segments[0][0] - 1, []
    for number, is_closed, is_decoded in segments:
        if not is_decoded:
            break
        if is_closed:
            reached = number
            closed.append(number)
    return Frontier(reached, tuple(closed))


def frontier_at(store: Store, segment: int) -> Frontier:
    """That segment as the frontier, with all ends before it that the store has."""
    closed = (s.number for s in store.segments() if s.is_closed and s.number <= segment)
    return Frontier(segment, tuple(sorted(closed)))
