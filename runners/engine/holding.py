"""What a run does with what it holds at the source, while the change log has no room or while the
source's log runs out. Pure; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WhenStalled(StrEnum):
    """What a person chose for a replicator that is stalled: the connection to the source's log
    stays, it is closed until there is room, or the place in the source's log is given up."""

    WAIT = "wait"
    CLOSE = "close"
    RELEASE = "release"


class Act(StrEnum):
    """What is due now."""

    KEEP = "keep"
    CLOSE = "close"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True)
class Holding:
    """`stalled_seconds`: how long reading waits for room before `when_stalled` is done.
    `least_hours`: below so many hours of the source's log, the place is given up; 0: never.
    `holds_log`: the source keeps its log for us. Where it does not, there is nothing to give up."""

    when_stalled: WhenStalled = WhenStalled.WAIT
    stalled_seconds: float = 600.0
    least_hours: float = 0.0
    holds_log: bool = True

    def due(self, stalled: float | None, hours_left: float | None) -> Act:
        """`stalled`: for how many seconds reading has waited for room; None while it reads.
        `hours_left`: for how long the source still keeps its log; None: it is not known."""
        is_short = hours_left is not None and hours_left < self.least_hours
        if self.holds_log and is_short:
            return Act.GIVE_UP
        if stalled is None or stalled < self.stalled_seconds:
            return Act.KEEP
        if self.when_stalled is WhenStalled.RELEASE and self.holds_log:
            return Act.GIVE_UP
        return Act.KEEP if self.when_stalled is WhenStalled.WAIT else Act.CLOSE
