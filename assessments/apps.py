"""The Django application `assessments`."""

from __future__ import annotations

from django.apps import AppConfig


class AssessmentsConfig(AppConfig):
    """Configuration of `assessments`."""

    name = "assessments"
    default_auto_field = "django.db.models.BigAutoField"
