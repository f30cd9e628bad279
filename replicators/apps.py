"""The Django application `replicators`."""

from __future__ import annotations

from django.apps import AppConfig


class ReplicatorsConfig(AppConfig):
    """Configuration of `replicators`."""

    name = "replicators"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks. Replicators belong to who made them."""
        import replicators.project.checks  # noqa: F401
        from replicators.models import Replicator
        from replicators.permissions import owned

        owned("replicators", Replicator)
