"""Tasks of the workers; each task is one call."""

from __future__ import annotations

import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down

from replicators import audit
from replicators.tokens import tokens_expire
from runners.logs.write import prune_run_logs
from runners.metrics import record
from runners.subscribing import keeping
from runners.supervision import reconcile, removal, retention, verifications
from runners.supervision.supervisor import Supervisor

_closing = threading.Event()


@worker_shutting_down.connect
def _close(**_: Any) -> None:
    """Make this process's supervisors ask their runs to stop. The desired states of replicators
    stay as they are."""
    _closing.set()


@shared_task(acks_late=False, ignore_result=True)
def supervise_run(run_id: str) -> None:
    """Watch a run to its end (queue `runs`, threads)."""
    Supervisor(run_id, closing=_closing).supervise()


@shared_task(acks_late=True, ignore_result=True, time_limit=60)
def reconcile_runs() -> None:
    """Start, stop and clean up runs until they match the desired states."""
    reconcile.reconcile_runs()


@shared_task(acks_late=True, ignore_result=True, time_limit=60)
def reconcile_verifications() -> None:
    """Start, watch and end verifications, also those of the schedules."""
    verifications.reconcile_verifications()


@shared_task(acks_late=True, ignore_result=True, time_limit=570)
def drop_replicator(replicator_id: str) -> None:
    """Remove a deleted replicator."""
    removal.drop_replicator(replicator_id)


@shared_task(acks_late=True, ignore_result=True, time_limit=570)
def keep_feeds() -> None:
    """Tidy up what targets keep for subscribers."""
    keeping.keep_feeds()


@shared_task(acks_late=True, ignore_result=True, time_limit=120)
def prune_metrics() -> None:
    """Drop expired metrics, activity, verifications, audit rows, tokens and run logs."""
    record.prune_metrics()
    retention.prune_activity()
    retention.prune_verifications()
    audit.prune()
    tokens_expire()
    prune_run_logs()
