"""The Celery application of the workers and of beat."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, celeryd_init
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from replicators.project.keys import require_keys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replicators.project.settings")

app = Celery("replicators")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect
@beat_init.connect
def _keys(**_: Any) -> None:
    """Stop a worker or beat without the keys at its start; a task that needs one would fail much
    later."""
    try:
        require_keys(settings.KEYS, settings.VAR_DIR)
    except ImproperlyConfigured as err:  # Celery would only log it and go on
        raise SystemExit(str(err)) from err
