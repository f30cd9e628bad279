"""Drafts: replicators that are still being built, with what their source and their last assessment
said."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.urls import reverse

from replicators.models import Replicator


class Draft(models.Model):
    """What a replicator will be, filled step by step; same fields as `Replicator`. `version` grows
    with each change, for the 409 of a stale tab. `accepted` lists `[schema, table, column]` whose
    losses somebody accepted. `replicator_id` is set by the deploy, so that deploying twice makes
    one replicator."""

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
    accepted = models.JSONField(default=list, blank=True)
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

    def get_absolute_url(self) -> str:
        return reverse("drafts:draft", args=[self.pk])


class SourceTables(models.Model):
    """The tables that a source had when it was last asked. `digest` stands for the source as it was
    entered then; `tables` holds `[schema, name, rows_estimated, size_bytes, has_key, columns]` in
    order."""

    digest = models.CharField(max_length=64)
    tables = models.JSONField(default=list)
    listed_at = models.DateTimeField()

    class Meta:
        abstract = True


class Listing(SourceTables):
    """Those of a draft's source."""

    draft = models.OneToOneField(
        Draft, on_delete=models.CASCADE, primary_key=True, related_name="listing"
    )

    def __str__(self) -> str:
        return f"Tables of {self.draft_id}"


class ReplicatorListing(SourceTables):
    """Those of the source of a replicator that was deployed, from which more are added."""

    replicator = models.OneToOneField(
        Replicator, on_delete=models.CASCADE, primary_key=True, related_name="listing"
    )

    def __str__(self) -> str:
        return f"Tables of {self.replicator_id}"


class StoredReport(models.Model):
    """A draft's last assessment: the report's JSON form. `digest` stands for what was assessed, so
    that an edit shows it as stale; `explicit` names the tables `[schema, name]` whose columns had
    been chosen one by one, `doubtful` the columns `[schema, table, column]` that lose something or
    are lost."""

    draft = models.OneToOneField(
        Draft, on_delete=models.CASCADE, primary_key=True, related_name="report"
    )
    digest = models.CharField(max_length=64)
    report = models.JSONField()
    errors = models.PositiveIntegerField(default=0)
    explicit = models.JSONField(default=list)
    doubtful = models.JSONField(default=list)
    assessed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"Assessment of {self.draft_id}"
