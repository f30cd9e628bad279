"""Drafts: replicators that are being built, with the last answer of their source and their last
assessment."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.urls import reverse

from replicators.models import Replicator


class Draft(models.Model):
    """A future replicator that is filled in step by step. It has the same fields as `Replicator`.
    `version` grows with each change, for the 409 of a stale tab. `accepted` lists the `[schema,
    table, column]` whose losses somebody accepted. The deploy sets `replicator_id`, so that
    deploying twice makes one replicator."""

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
    """The tables that a source had when it was last asked. `digest` is the digest of the source's
    settings at that time. `tables` holds `[schema, name, rows_estimated, size_bytes, has_key,
    columns]` in order."""

    digest = models.CharField(max_length=64)
    tables = models.JSONField(default=list)
    listed_at = models.DateTimeField()

    class Meta:
        abstract = True


class Listing(SourceTables):
    """The tables of a draft's source."""

    draft = models.OneToOneField(
        Draft, on_delete=models.CASCADE, primary_key=True, related_name="listing"
    )

    def __str__(self) -> str:
        return f"Tables of {self.draft_id}"


class ReplicatorListing(SourceTables):
    """The tables of a deployed replicator's source. More of them can be added."""

    replicator = models.OneToOneField(
        Replicator, on_delete=models.CASCADE, primary_key=True, related_name="listing"
    )

    def __str__(self) -> str:
        return f"Tables of {self.replicator_id}"


class StoredReport(models.Model):
    """A draft's last assessment: the report's JSON form. `digest` is the digest of what was
    assessed, so that the report is shown as stale after an edit. `explicit` lists the tables
    `[schema, name]` whose columns were chosen one by one. `doubtful` lists the columns `[schema,
    table, column]` that lose something or are lost."""

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
