"""When a replicator is verified by itself: five fields of cron, in UTC. Pure; knows no database."""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from replicators.invalid import InvalidConfig

PRESETS = (
    ("", "Never"),
    ("0 3 * * *", "Every day at 03:00 UTC"),
    ("0 3 * * 0", "Every Sunday at 03:00 UTC"),
)
"""The schedules that the page offers beside a cron text of one's own."""
_FAULT = "must be five fields of cron in UTC, such as 0 3 * * * (every day at 03:00)"


def next_time(cron: str, after: datetime) -> datetime:
    """The first time of the schedule after that moment. InvalidConfig for a text that is none, or
    that never comes."""
    try:
        if len(cron.split()) != 5:
            raise CronSimError(_FAULT)
        found: datetime = next(CronSim(cron, after.astimezone(UTC)))
    except (CronSimError, StopIteration) as err:
        raise InvalidConfig({"cron": _FAULT}) from err
    return found


def explained(cron: str) -> str:
    """The schedule in words; empty where there is none."""
    known = dict(PRESETS)
    if cron in known:
        return known[cron] if cron else ""
    try:
        return f"{CronSim(cron, datetime.now(UTC)).explain()} UTC"
    except CronSimError:
        return cron
