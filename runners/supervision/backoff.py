"""The supervisor's back-off: when a failed replicator is retried, and when retries end and it waits
for a person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from replicators.config import Options
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.message import Retry
from runners.events.write import event_add
from runners.models import Progress, Run
from runners.services import progress_of

FIRST_SECONDS = 5.0
FIX_SECONDS = 60.0
LAST_SECONDS = 600.0
QUIET = timedelta(minutes=10)


def delay_seconds(failures: int, retry: Retry) -> float:
    """Seconds to wait after the `failures`-th failure in a row: 5 s, doubling to 10 min. An error
    that a person has to fix is retried more slowly."""
    first = FIX_SECONDS if retry is Retry.AFTER_FIX else FIRST_SECONDS
    return float(min(LAST_SECONDS, first * 2 ** min(failures - 1, 20)))


def _duration(passed: timedelta) -> str:
    minutes = round(passed.total_seconds() / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"


def _patience(options: dict[str, Any]) -> timedelta:
    """How long retries go on. Counting a failure must not need options that this version can read:
    the options may be what failed."""
    return timedelta(minutes=Options.readable(options).retry_minutes)


def _idle(progress: Progress, run: Run, now: datetime) -> timedelta:
    """How much later than due the run was started. The machine was off or all slots were taken
    then, so this time does not count as retrying."""
    begun = run.started_at or now
    late = begun - (progress.retry_at or begun)
    return late if late > timedelta(seconds=LAST_SECONDS) else timedelta()


@transaction.atomic
def failure_note(*, run: Run, code: str, facts: dict[str, Any], now: datetime) -> Progress:
    """Count a failed or lost run of a replicator and set the time of its next retry."""
    progress = progress_of(run.replicator)
    if is_quiet(run, now):
        progress.failures, progress.failing_since = 0, None
    retry = message_of(code).retry
    progress.failures += 1
    progress.failing_since = min((progress.failing_since or now) + _idle(progress, run, now), now)
    progress.retry_at = now + timedelta(seconds=delay_seconds(progress.failures, retry))
    if progress.error_code != code or progress.error_since is None:
        progress.error_since = now
    progress.error_code, progress.error_facts = code, facts
    patience = _patience(run.replicator.options)
    is_used_up = now - progress.failing_since >= patience
    progress.is_given_up = is_used_up or retry is Retry.NEVER
    if progress.is_given_up:
        progress.retry_at = None
        why = "run:retry-time-used-up" if is_used_up else code
        reported = {"duration": _duration(now - progress.failing_since)} if is_used_up else facts
        event_add(
            "replicator_given_up", replicator=run.replicator, run=run, code=why, facts=reported
        )
    progress.save(
        update_fields=[
            "failures", "failing_since", "retry_at", "error_code", "error_facts", "error_since",
            "is_given_up",
        ]
    )  # fmt: skip
    return progress


def is_quiet(run: Run, now: datetime) -> bool:
    """Whether the run went well for long enough that earlier failures no longer count."""
    return run.started_at is not None and now - run.started_at >= QUIET
