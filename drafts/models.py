"""Drafts: replicators that are still being built."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Draft(models.Model):
    """What a replicator will be, filled step by step; same fields as `Replicator`. `version` grows with each save, for
    the 409 of a stale tab. `replicator_id` is set by the deploy, so that deploying twice makes one replicator."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64, blank=True)
    description = models.CharField(max_length=400, blank=True)
    source_kind = models.CharField(max_length=40, blank=True)
    source_params = models.JSONField(default=dict, blank=True)
    source_secrets = models.TextField(blank=True)
    target_kind = models.CharField(max_length=40, blank=True)
    target_params = models.JSONField(default=dict, blank=True)
    target_secrets = models.TextField(blank=True)
    tables = models.JSONField(default=list, blank=True)
    options = models.JSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)
    replicator_id = models.UUIDField(null=True, blank=True, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="drafts"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-updated_at",)

    def __str__(self) -> str:
        return self.name or "Unnamed draft"
