"""Sends tasks to the workers; never fails and never waits long where no broker answers (beat asks again)."""

from __future__ import annotations

import logging

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


def send(task: str, *arguments: str, expires: float = 30.0) -> None:
    """Queue a task of `runners.tasks` by name; one that waits longer than `expires` seconds is dropped."""
    if not settings.REDIS_URL:
        return
    queue = "runs" if task == "supervise_run" else "default"
    try:
        current_app.send_task(
            f"runners.tasks.{task}",
            args=arguments,
            queue=queue,
            expires=expires,
            retry=False,
            ignore_result=True,
        )
    except (OperationalError, OSError) as err:
        logger.warning(
            "The broker took no task %s (%s); beat asks again.", task, type(err).__name__
        )


def nudge() -> None:
    """Reconcile at once after the transaction, so that people don't wait for beat."""
    transaction.on_commit(lambda: send("reconcile_runs", expires=10.0))
