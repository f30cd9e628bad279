"""The Celery application of the workers and of beat."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replicators.project.settings")

app = Celery("replicators")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
