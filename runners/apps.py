"""The Django application `runners`."""

from __future__ import annotations

from django.apps import AppConfig


class RunnersConfig(AppConfig):
    """Configuration of `runners`."""

    name = "runners"
    default_auto_field = "django.db.models.BigAutoField"
