"""Log sequence numbers of PostgreSQL as text, integer and `Position`; asks no server."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.model.positions import Position


def lsn_to_int(text: str) -> int:
    """`16/B374D848` as an integer."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_to_text(value: int) -> str:
    """The inverse of `lsn_to_int`."""
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


@dataclass(frozen=True, slots=True)
class Identity:
    """A server and its timeline; each position carries it (CORRECTNESS 23)."""

    system_identifier: str
    timeline: int

    def position(self, lsn: int) -> Position:
        """The position at `lsn` of this server."""
        detail = {"system_identifier": self.system_identifier, "timeline": self.timeline}
        return Position(lsn, detail)
