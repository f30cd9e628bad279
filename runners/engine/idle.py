"""How often a run looks at things, and reports, while nothing happens. Many runs use the shared
Spark; they would spend the cores on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Idle:
    """Seconds. `turn`: between two looks at the tables. `beat`: between two writes of metrics.
    `read`: the longest wait for the source's next bytes; a stop is seen after it. `record`: between
    two records of positions without rows."""

    turn: float = 0.2
    beat: float = 1.0
    read: float = 0.25
    record: float = 2.0
    heartbeat: float = 1.0
    round: float = 1.0
    row: float = 1.0
    same_row: float = 6.0


OWN = Idle()
SHARED = Idle(
    turn=2.0, beat=5.0, read=2.0, record=5.0, heartbeat=2.0, round=4.0, row=6.0, same_row=30.0
)
