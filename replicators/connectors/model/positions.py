"""Positions in a source's log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Position:
    """The end of the last complete transaction (CORRECTNESS 1).

    `value` orders positions of one source (PostgreSQL: commit end LSN as an integer); `detail` is what the source needs
    besides to find and check it again (system identifier, timeline, GTID set ...), as plain JSON.
    """

    value: int
    detail: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "detail": self.detail}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(int(data["value"]), dict(data.get("detail", {})))
