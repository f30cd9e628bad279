"""Whether workers and scheduler are alive, read from signs in the database; a banner says which
part to start."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlparse

from django.conf import settings
from django.core.cache import cache
from django.db.models import Q
from django.utils import timezone

from runners.models import Run, Sign

WORKER_SECONDS = 45.0
BROKER_SECONDS = 0.5
_KEPT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """`message` is the banner's text, empty when all is well."""

    reconciled_at: datetime | None
    message: str

    @property
    def is_ok(self) -> bool:
        """Whether every part answers."""
        return not self.message


def worker_health() -> WorkerHealth:
    """Reads the signs with two small queries. It asks the broker only when the workers are
    silent."""
    at = Sign.objects.filter(name="reconcile").values_list("at", flat=True).first()
    return WorkerHealth(at, _message(at, timezone.now()))


def _message(at: datetime | None, now: datetime) -> str:
    silent = timedelta(seconds=WORKER_SECONDS)
    if not settings.REDIS_URL:
        return "No worker: nothing starts or stops. Run `make dev`."
    if at is None or now - at > silent:
        return _who_is_silent()
    since = now - silent
    unwatched = Q(supervised_at__lt=since) | Q(supervised_at=None, created_at__lt=since)
    if Run.objects.active().filter(unwatched).exists():
        return (
            "The worker for runs doesn't answer: runs are neither started nor watched. Start "
            "it with `make worker-runs`."
        )
    return ""


def _who_is_silent() -> str:
    place = urlparse(settings.REDIS_URL)
    where = f"{place.hostname}:{place.port or 6379}"
    if not _answers(place.hostname or "", place.port or 6379):
        return (
            f"The broker at `{where}` doesn't answer: nothing starts or stops. Start it, or "
            "run `make dev`, which brings one."
        )
    return (
        "The workers don't answer: nothing starts or stops until they run again. "
        "Start them with `make worker-default` and `make beat`, or all of it with `make dev`."
    )


def _answers(host: str, port: int) -> bool:
    """Whether something listens there; checked at most every ten seconds."""
    key = f"broker-answers:{host}:{port}"
    known: bool | None = cache.get(key)
    if known is None:
        try:
            socket.create_connection((host, port), BROKER_SECONDS).close()
            known = True
        except OSError:
            known = False
        cache.set(key, known, _KEPT_SECONDS)
    return known
