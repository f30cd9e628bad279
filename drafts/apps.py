"""The Django application `drafts`."""

from __future__ import annotations

from django.apps import AppConfig


class DraftsConfig(AppConfig):
    """Configuration of `drafts`."""

    name = "drafts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Drafts belong to who made them."""
        from drafts.models import Draft
        from replicators.permissions import owned

        owned("drafts", Draft)
