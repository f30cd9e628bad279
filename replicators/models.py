"""What people define: replicators, and the tokens programs use."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone


class DesiredState(models.TextChoices):
    """What a person asked for."""

    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"


class ReplicatorQuerySet(models.QuerySet["Replicator"]):
    """Names for the filters that selectors use."""

    def live(self) -> ReplicatorQuerySet:
        """Those that are not being deleted."""
        return self.filter(deleting_since=None)


class Replicator(models.Model):
    """A replicator: copies chosen tables of a source into a target.

    `*_params` hold what is not secret, `*_secrets` an encrypted JSON object. `tables` is a list of
    `{"schema", "name", "columns": [names] or [], "excluded": ["updates", "deletes"] or [], "mode":
    "" or a mode, "filter": "" or a row filter}`, no columns meaning all, no mode the replicator's.
    `options` are the advanced settings. `tables_version` grows with each change that people make to
    its tables or options: a run, which keeps its tables in mind, looks at this number alone. It is
    no part of the definition. `generation` differs between two replicators of one name, so that a
    new one never finds old positions.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=64, unique=True)
    description = models.CharField(max_length=400, blank=True)
    source_kind = models.CharField(max_length=40)
    source_params = models.JSONField(default=dict)
    source_secrets = models.TextField(blank=True)
    target_kind = models.CharField(max_length=40)
    target_params = models.JSONField(default=dict)
    target_secrets = models.TextField(blank=True)
    tables = models.JSONField(default=list)
    options = models.JSONField(default=dict)
    tables_version = models.PositiveBigIntegerField(default=0, editable=False)
    desired_state = models.CharField(
        max_length=10, choices=DesiredState.choices, default=DesiredState.PAUSED
    )
    keep_target = models.BooleanField(default=True)
    deleting_since = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="replicators"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = models.Manager.from_queryset(ReplicatorQuerySet)()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("runners:replicator", args=[self.pk])

    @property
    def slot_name(self) -> str:
        """The name of what it makes at the source: unique for ever, at most 63 bytes of
        [a-z0-9_]."""
        return f"replicator_{self.pk.hex}"


class Scope(models.TextChoices):
    """What a token may do of what its user may."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"


class ApiToken(models.Model):
    """A program's token: only its SHA-256 is kept, the text is shown once. Without `expires_at` it
    never ends. `is_end_told`: the audit trail knows that it has."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.WRITE)
    expires_at = models.DateTimeField(null=True, blank=True)
    is_end_told = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.name

    def is_over(self, now: datetime | None = None) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= (now or timezone.now())


class IdempotencyKey(models.Model):
    """A request that was sent with a key, so that it is carried out once; `status` is empty until
    it was answered."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "key"), name="one_request_per_key"),)

    def __str__(self) -> str:
        return self.key


from replicators.audit import AuditEntry  # noqa: E402, F401 - a model, in a module of its own


class Tries(models.Model):
    """How often a password was guessed wrongly in a window that ends at a time; the key is a
    SHA-256 of who guessed, or from where."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "tries"

    def __str__(self) -> str:
        return self.key
