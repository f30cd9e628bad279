"""Positions among a source's changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

ORDINALS = 1 << 63


@dataclass(frozen=True, slots=True)
class Position:
    """The end of the last complete transaction (CORRECTNESS 1).

    `ordinal` orders the positions of one source: the engine compares ordinals, and knows nothing
    else of a position. The source gives it (PostgreSQL: the LSN), from 0 to below 2^63, also where
    its own positions are of another kind. Snapshots, heartbeats and looks give ordinals of places
    that no change has come from yet. `detail` is the source's own, as plain JSON: what it needs to
    find and check its place again (system identifier, timeline, GTID set ...). Only the source
    reads it.
    """

    ordinal: int
    detail: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    def __post_init__(self) -> None:
        if not 0 <= self.ordinal < ORDINALS:
            raise ValueError(f"a position's ordinal has 63 bits, not {self.ordinal}")

    def to_json(self) -> dict[str, Any]:
        """The stored form. It calls the ordinal `value`, as earlier versions did."""
        return {"value": self.ordinal, "detail": self.detail}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(int(data["value"]), dict(data.get("detail", {})))
