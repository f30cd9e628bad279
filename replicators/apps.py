"""The Django application `replicators`."""

from __future__ import annotations

from django.apps import AppConfig


class ReplicatorsConfig(AppConfig):
    """Configuration of `replicators`."""

    name = "replicators"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        import replicators.project.checks  # noqa: F401
