"""When data sets are looked for, as a cron expression in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError


def cron_fault(text: str) -> str:
    """What is wrong with the expression, as a sentence."""
    if not text:
        return ""
    try:
        next(CronSim(text, datetime.now(UTC)))
    except (CronSimError, StopIteration):
        return "must be a cron expression of five fields, for example 0 6 * * *"
    return ""


def next_after(text: str, at: float) -> float:
    """The first time of the schedule after `at`, in seconds since the epoch."""
    return float(next(CronSim(text, datetime.fromtimestamp(at, UTC))).timestamp())


def last_before(text: str, at: float) -> float:
    """The last time of the schedule at or before `at`."""
    backwards = CronSim(text, datetime.fromtimestamp(at + 1, UTC), reverse=True)
    return float(next(backwards).timestamp())
