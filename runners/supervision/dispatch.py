"""Sends tasks to the workers. It never fails and never waits long when no broker answers: beat
sends again."""

from __future__ import annotations

import logging
import socket
from urllib.parse import urlparse

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

BROKER_SECONDS = 0.5


def send(task: str, *arguments: str, expires: float = 30.0) -> None:
    """Queue a task of `runners.tasks` by name. A task that waits longer than `expires` seconds is
    dropped."""
    if not settings.REDIS_URL:
        return
    if not _listens():
        logger.warning("The broker took no task %s (nobody listens); beat asks again.", task)
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


def _listens() -> bool:
    """Whether the broker accepts a connection. Celery tries its own first connection for six
    seconds, whatever its settings, and a page would wait for that."""
    place = urlparse(settings.REDIS_URL)
    if not place.hostname:
        return True
    try:
        socket.create_connection((place.hostname, place.port or 6379), BROKER_SECONDS).close()
    except OSError:
        return False
    return True


def nudge() -> None:
    """Reconcile at once after the transaction, so that people don't wait for beat."""
    transaction.on_commit(lambda: send("reconcile_runs", expires=10.0))
