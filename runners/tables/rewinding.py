"""How far back a table can be rewound."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from replicators.config import Options, target_can, target_plugin
from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.services import target_of
from runners.models import Segment

EARLIER = (
    "Instead of an earlier time, a re-sync copies the table afresh; a mirror is the same "
    "after both."
)


@dataclass(frozen=True, slots=True)
class Window:
    """The times that a rewind may go back to, both ends included. `reason` says what limits
    them."""

    earliest: datetime
    latest: datetime
    reason: str
    earlier: str = EARLIER

    def __str__(self) -> str:
        return (
            f"A rewind can go back to between {self.earliest:%Y-%m-%d %H:%M:%S} and "
            f"{self.latest:%Y-%m-%d %H:%M:%S} UTC: {self.reason}. {EARLIER}"
        )


def can_rewind(replicator: Replicator) -> bool:
    """Whether the target keeps older versions."""
    can = target_can(replicator.target_kind)
    return can is None or can.can_rewind


def refusal(table: TableId) -> str:
    """Why a table can't be rewound where the target keeps no older versions."""
    error = ReplicationError("target:no-rewind", table=table)
    return f"{error.message.text} {error.message.suggestion}"


def rewind_window(replicator: Replicator, now: datetime | None = None) -> Window:
    """The window as known without opening the target. It depends on the change log's keep time and
    first segment, and on the versions that the target keeps. The run checks again, and refuses a
    version that the target does not have."""
    now = now or timezone.now()
    keep = Options.parse(replicator.options).keep_hours
    reach = _reach_seconds(replicator, 3600 * keep)
    bounds = [(now - timedelta(hours=keep), f"changes are kept for {keep:g} hours")]
    if reach < 3600 * keep:
        reported = (
            f"the target keeps old versions for {round(reach / 60)} minutes (its setting History)"
        )
        bounds.append((now - timedelta(seconds=reach), reported))
    first = Segment.objects.filter(replicator=replicator).order_by("number").first()
    if first is not None:
        bounds.append((first.sealed_at, "the change log begins there"))
    earliest, reason = max(bounds)
    whole = earliest.replace(microsecond=0) + timedelta(seconds=1)
    return Window(min(whole, now), now, reason)


def _reach_seconds(replicator: Replicator, keep_seconds: float) -> float:
    """How far back the target has a version to start from. It is the time for which the target
    keeps every version; where the target keeps single older versions, it is the time for which
    changes are kept."""
    plugin, params = target_plugin(replicator.target_kind), target_of(replicator)
    if plugin.apart_seconds(params, keep_seconds):
        return keep_seconds
    return plugin.history_seconds(params)


def parse_moment(text: str) -> datetime | None:
    """A form's time, in UTC; None where the text is no time."""
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return None if found is None else found if found.tzinfo else found.replace(tzinfo=UTC)
