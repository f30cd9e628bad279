"""The Django project: settings, routes and processes; holds no logic of replicators."""

from __future__ import annotations

from replicators.project.celery import app as celery_app

__all__ = ["celery_app"]
