"""How far the log is decoded without a gap (CORRECTNESS 2), and where whole transactions end before
that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicators.connectors.model.changes import last_sequence
from runners.engine.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Frontier:
    """Up to where everything is decoded. It has the number of the last segment that ends at a
    transaction's end and lies before the first undecoded one. It also has the numbers of all such
    segments: a merge may end only at one of them."""

    segment: int
    closed: tuple[int, ...]

    @property
    def sequence(self) -> int:
        return last_sequence(self.segment)


def frontier(segments: Sequence[tuple[int, bool, bool]], last_known: int) -> Frontier:
    """The frontier from (number, is_closed, is_decoded) in order. If no segment is kept, everything
    up to `last_known` is done."""
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
    """The frontier that ends at that segment, with all earlier ends that the store has."""
    closed = (s.number for s in store.segments() if s.is_closed and s.number <= segment)
    return Frontier(segment, tuple(sorted(closed)))
