"""Removes a deleted replicator: its objects at the source, its target tables, its change log, its
rows."""

from __future__ import annotations

import logging
import subprocess
import sys
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from replicators import audit
from replicators.config import InvalidConfig, source_plugin
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.message import Retry
from replicators.models import Replicator
from replicators.private import opened_privately, private_folder
from replicators.services import source_of
from runners.events.write import event_add
from runners.models import (
    ChangeFile,
    LogLine,
    Progress,
    ReplicatorMetric,
    Run,
    Segment,
    TableMetric,
)
from runners.services import progress_of
from runners.supervision.backoff import FIRST_SECONDS, LAST_SECONDS, delay_seconds
from runners.supervision.retention import drop_portion
from runners.verifications import DifferingRow, Verification

logger = logging.getLogger(__name__)

TRIES = 5
CLAIM = timedelta(minutes=2)
TARGET_SECONDS = 300
LONGEST = max(timedelta(seconds=LAST_SECONDS), timedelta(seconds=TARGET_SECONDS) + CLAIM)
"""The longest wait. A time further away was set before the clock was set back."""


def what_goes(replicator: Replicator) -> list[tuple[str, str]]:
    """Kind and name of everything that a delete removes at the source. It does not connect to the
    source."""
    try:
        return source_plugin(replicator.source_kind).objects(replicator.slot_name)
    except ReplicationError:
        return []


def drop_replicator(pk: uuid.UUID | str, now: datetime | None = None) -> bool:
    """Remove the replicator; True when it is gone. Idempotent. An unreachable source is retried
    `TRIES` times; then an event that outlives the replicator records the statements to run
    there."""
    now = now or timezone.now()
    replicator = Replicator.objects.exclude(deleting_since=None).filter(pk=pk).first()
    if replicator is None:
        return True
    if _has_process(replicator) or not _claim(replicator, now):
        return False
    try:
        return _drop(replicator, now)
    except Exception:
        # No other task takes it before the claim ends, so shorten the wait.
        _wait(replicator, now + timedelta(seconds=FIRST_SECONDS))
        raise


def _has_process(replicator: Replicator) -> bool:
    """Whether a run or a verification may still read or write. A verification is asked to stop by
    those who watch it."""
    compared = Verification.objects.active().filter(replicator=replicator).exclude(lease="")
    return Run.objects.active().filter(replicator=replicator).exists() or compared.exists()


def _drop(replicator: Replicator, now: datetime) -> bool:
    statements = _drop_source(replicator, now)
    if statements is None:
        return False
    if not replicator.keep_target:
        _wait(replicator, timezone.now() + timedelta(seconds=TARGET_SECONDS) + CLAIM)
        _drop_target(replicator)
    _drop_log(replicator)
    _forget(replicator, statements)
    return True


def _claim(replicator: Replicator, now: datetime) -> bool:
    """Let one task at a time work on it: the others see a time to wait for."""
    progress = progress_of(replicator)
    seen = progress.retry_at
    if seen is not None and now < seen <= now + LONGEST:
        return False
    found = Progress.objects.filter(pk=progress.pk, retry_at=seen)
    return bool(found.update(retry_at=now + CLAIM))


def _wait(replicator: Replicator, until: datetime) -> None:
    """Keep other tasks from it before `until`."""
    Progress.objects.filter(replicator=replicator).update(retry_at=until)


def _drop_source(replicator: Replicator, now: datetime) -> list[str] | None:
    """Drop its objects at the source. Returns the statements that were not run (empty: all done),
    or None to try again later."""
    statements: list[str] = []
    try:
        plugin = source_plugin(replicator.source_kind)
        with plugin.control(source_of(replicator), replicator.slot_name) as control:
            statements = control.drop_statements()
            control.drop()
    except Exception as err:  # noqa: BLE001 - whatever a driver raises, the delete must go on in the end
        return _drop_failed(replicator, err, statements, now)
    return []


def _drop_failed(
    replicator: Replicator, err: Exception, statements: list[str], now: datetime
) -> list[str] | None:
    logger.warning("Source of %s could not be cleaned (%s).", replicator.pk, type(err).__name__)
    progress = progress_of(replicator)
    tries = progress.failures + 1
    code = err.code if isinstance(err, ReplicationError) else "internal:unexpected"
    is_hopeless = isinstance(err, InvalidConfig) or code == "config:unknown-kind"
    is_final = tries >= TRIES or is_hopeless
    wait = timedelta(seconds=delay_seconds(tries, Retry.AUTO))
    Progress.objects.filter(pk=progress.pk).update(
        failures=tries, retry_at=now + wait, error_code=code
    )
    if not is_final:
        return None
    return statements or [f"-- remove what is named {replicator.slot_name} at the source"]


def _drop_target(replicator: Replicator) -> None:
    """Drop the target tables in a process of its own, since it needs Spark."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "drop_target"]
    private_folder(settings.RUN_LOG_DIR)
    log = settings.RUN_LOG_DIR / f"drop-{replicator.pk}.log"
    with open(log, "ab", opener=opened_privately) as output:
        try:
            subprocess.run(
                [*command, str(replicator.pk)],
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TARGET_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as err:
            logger.warning("Target of %s was not cleaned (%s).", replicator.pk, type(err).__name__)
            event_add(
                "target_left",
                replicator=None,
                facts={"replicator": replicator.name, "id": str(replicator.pk)},
            )


def _drop_log(replicator: Replicator) -> None:
    from replicators.connectors import files  # imported here: pages need no Arrow
    from runners.engine.changelog.segments import root_of

    try:
        files.remove_folder(root_of(settings.RUNNER.log_url, str(replicator.pk)))
    except OSError as err:
        logger.warning("Change log of %s is left (%s).", replicator.pk, type(err).__name__)


def _forget(replicator: Replicator, statements: list[str]) -> None:
    _forget_rows(replicator)
    _forget_rest(replicator, statements)


def _forget_rows(replicator: Replicator) -> None:
    """Delete its rows in portions. There may be millions, and one transaction would block other
    writers for minutes. Safe to repeat after an interruption."""
    rows: list[QuerySet[Any]] = [
        TableMetric.objects.filter(table__replicator=replicator),
        DifferingRow.objects.filter(table__verification__replicator=replicator),
    ]
    for model in (ReplicatorMetric, ChangeFile, Segment, LogLine):
        rows.append(model.objects.filter(replicator=replicator))
    for found in rows:
        while drop_portion(found):
            logger.debug("Dropped a portion of %s.", found.model.__name__)


@transaction.atomic
def _forget_rest(replicator: Replicator, statements: list[str]) -> None:
    facts = {
        "name": replicator.name,
        "id": str(replicator.pk),
        "statements": statements,
        "keep_target": replicator.keep_target,
    }
    thing = audit.Thing.of(replicator)
    actor = audit.asked_by("replicator_delete_asked", thing)
    event_add("replicator_deleted", replicator=None, actor=actor.name, facts=facts)
    new = {"keep_target": replicator.keep_target, "statements": statements}
    audit.record("replicator_deleted", thing, actor=actor, new=new)
    replicator.delete()
