"""How long the logs that a replicator needs are still kept. Pure; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from replicators.options import Options

GIVEN_UP_BELOW = 4
"""The position is given up below this part of the hours at which others are paused."""


@dataclass(frozen=True, slots=True)
class Retention:
    """`source_hours_left`: until the source drops log that was not read. `log_hours_left`: until
    the change log is at its limit, at the growth of the last minutes. None: there is no limit, it
    is not known, or the log does not grow. `action`: what is done where the source's is short."""

    source_hours_left: float | None
    log_hours_left: float | None
    warn_hours: float
    action: str = "warn"

    @property
    def gives_up_hours(self) -> float:
        """Below so many hours of the source's log the position is given up; 0: never."""
        return self.warn_hours / GIVEN_UP_BELOW if self.action == "drop" else 0.0

    @property
    def is_source_short(self) -> bool:
        """Whether the source keeps its log for fewer hours than the warning says."""
        return _is_short(self.source_hours_left, self.warn_hours)

    @property
    def is_log_short(self) -> bool:
        """Whether the change log is full within fewer hours than the warning says."""
        return _is_short(self.log_hours_left, self.warn_hours)

    @property
    def is_short(self) -> bool:
        """Whether one of them is short."""
        return self.is_source_short or self.is_log_short

    def to_json(self) -> dict[str, Any]:
        """The form of REST."""
        return {
            **asdict(self),
            "is_short": self.is_short,
            "gives_up_hours": self.gives_up_hours,
        }


def retention_of(facts: Mapping[str, Any], options: Mapping[str, Any]) -> Retention:
    """From what the run measured, and the replicator's options as they are stored."""
    said = Options.readable(options)
    left, log_left = facts.get("hours_left"), facts.get("log_hours_left")
    return Retention(left, log_left, said.warn_hours, said.retention_action)


def _is_short(hours: float | None, warn_hours: float) -> bool:
    return hours is not None and hours < warn_hours
