"""Parameters of the clock."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.params import param


@dataclass(frozen=True, slots=True)
class ClockParams:
    """`winding`: how many hours it still goes."""

    place: str = param("Where it hangs", help="The room.", addresses=True)
    winding: int = param("Hours it still goes", default=24, minimum=0, maximum=168)
    key: str = param("Key", default="", secret=True)
